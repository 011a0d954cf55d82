// Package rollout is the agent loop: a policy and its tools take turns until the policy gives an answer. The loop is
// pure state and can be driven in two ways. Staged activities rebuild the episodes from committed rows, take one step
// (a generated turn, or the results of tool calls) and commit the rows of that step. RunEpisodes takes every step in
// one process. Both ways call the same functions, so both produce the same tokens.
//
// Glossary. An *episode* is one trajectory that is not complete yet. A *turn* is a *context* (the prompt at turn 0, an
// observation later) followed by a *response*. The *prefix* of a turn is every token before its response; with a
// *history*, it is only the task and the latest turns (Window). An episode *awaits* a response, or it awaits the
// results of its last response's calls, or it has *finished*: answered, no_action (neither call nor answer), max_turns,
// or length (a response or the trajectory used up its budget; an observation that does not fit is not appended). As in
// rStar2's loop, an episode continues after a response with calls even if the response also answers. The random draws
// of a *sample* depend only on (label, run seed, step, group, sample, turn).
//
// An episode is *excluded* if the engine or a tool fails on it. It ends at that point with a reason, and the other
// episodes continue (Respond, AbsorbOutcomes). Evaluations exclude nothing.
//
// A protocol parses the *calls* of a response; the loop finds their tools (Settings.Tools, package tool) and runs the
// calls that can run (RunCalls). If a tool keeps state for each episode, its calls hold the episode's earlier ones.
//
// The policy's own text is never tokenised again: token ids are concatenated, and only prompts and observations are
// encoded.
package rollout
