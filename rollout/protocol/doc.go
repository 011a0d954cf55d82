// Package protocol defines the text between a policy and its tools or environment: the contract of prompt formats
// (Protocol) and the formats themselves. Each format is one file and one line in All.
//
//	RStar2       rstar2.go, frames.go, render.go, parse.go   calls of a Python tool and a boxed answer
//	ThinkAction  think_action.go                             a thought and an action for an interactive environment
//	Hermes       hermes.go                                   JSON calls of listed tools and a boxed answer
//	TIR          tir.go                                      python and output blocks and a boxed answer
//	Search       search.go, tagged.go                        thoughts, queries and an answer in tags
//	AEPO         aepo.go, tagged.go                          thoughts, searches, programs and a boxed answer in tags
//	PRS          prs.go, tagged.go                           reasoning, wiki searches and an answer in tags
//
// Glossary. A *context* is the text that the policy reads before a *response*. A *stop* is a string at which a response
// ends: the end of its turn of the chat, or the close of a call, after which the same turn continues. A *round* is a
// response and the *bodies* that answer its calls. *Marks* are the strings that text from outside (a task, a tool, an
// environment) never contains once it is rendered; guard takes them out.
//
// Glossary of RStar2. The *prompt* opens the user's turn, holds only the problem, and ends with the generation prompt,
// which already contains <reason>. A *response* is what the policy writes in one turn, including the end-of-turn tag. A
// *block* is one <tool_call>…</tool_call> of a response, found by non-greedy match. It is decoded into a *call* or into
// the reason why it cannot be decoded. A *body* is the text between <tool_response> tags that answers one call. The
// *observation* is the user turn that holds the bodies of one response's calls, up to and including the next generation
// prompt. An *answer pair* is one closed <answer>…</answer>. The answer is the content of the last \boxed{…} of the
// last pair.
//
// Fixed strings that occur often are single tokens (Added). So a usual trajectory has 40 to 60 tokens, while its text
// stays exactly the protocol's text.
package protocol
