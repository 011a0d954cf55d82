// Package rollout is the agent loop: a policy and its tool, turn by turn, until an answer. It is
// pure state with two ways to drive it. Staged activities rebuild the episodes from committed
// rows, take one step (a generated turn, or the results of tool calls) and commit its rows;
// RunEpisodes takes every step in process. Both call the same functions, so both see the same
// tokens.
//
// Glossary. An *episode* is one trajectory in the making. A *turn* is a *context* (the prompt at
// turn 0, the observation later) followed by a *response*; the *prefix* of a turn is every token
// before its response, or with a *history* the task and the latest turns alone (Window). An episode *awaits* a response, or results of its last response's calls, or
// it has *finished*: answered, no_action (neither call nor answer), max_turns, or length (a
// response or the trajectory used up its budget; an observation that does not fit is not
// appended). As in rStar2's loop, a response with calls goes on even if it also answers. A
// *sample*'s draws depend on (label, run seed, step, group, sample, turn) alone.
//
// An episode that the engine or the sandbox breaks on is *excluded*: it ends there, with a reason,
// and the others go on (Respond, AbsorbOutcomes). Evaluations exclude nothing.
//
// A call is a program of its own, or, where an interpreter lives as long as its episode, a cell of the episode's
// *notebook* (PendingNotebooks).
//
// The model's own text is never tokenised again: ids are concatenated, and only prompts and
// observations are encoded.
package rollout
