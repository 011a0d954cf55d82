// Package protocol is the text between a policy and its Python tool: rStar2-Agent's tool protocol.
//
// Glossary. The *prompt* opens the user's turn, holds the problem alone, and ends with the
// generation prompt, which already contains <reason>. A *response* is what the policy writes in
// one turn, the end-of-turn tag included. A *block* is one <tool_call>…</tool_call> of a
// response, found by non-greedy match; it is decoded into a *call* or into the reason why not. A
// *body* is the text between <tool_response> tags that answers one call; the *observation* is the
// user turn that holds the bodies of one response's calls, up to and including the next
// generation prompt. An *answer pair* is one closed <answer>…</answer>; the answer is what the
// last \boxed{…} of the last pair holds.
//
// The fixed strings that occur again and again are single tokens (Added), so that a usual
// trajectory has 40 to 60 tokens while its text stays the protocol's own.
package protocol
