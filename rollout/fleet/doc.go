// Package fleet generates episodes on several samplers at once, under the decisions of package rl/scheduler. It is the
// driver that turns the scheduler's decisions into calls of policy.Sampler, and what comes back into events.
//
// Glossary. An *engine* is a sampler with the size of its cache. An *episode* says which turn comes next, takes its
// response, and runs its tool calls. A *batch* is the turns that an engine generates in one call; turns that are
// decided meanwhile join the next one. An *attempt* is one try at a turn. Responses of attempts that were given up are
// dropped, so that every turn is absorbed exactly once, whatever engines do.
//
//	scheduler ─Start→ engine's queue ─batch→ Sampler.Generate ─→ Episode.Absorb ─→ Episode.Call ─→ scheduler
//
// If the samplers state row seeds, every episode has the same tokens whichever engines generate it, and however often a
// turn begins again. An engine that answers ErrLost or ErrOutOfMemory, or whose device fails, is taken out; its
// episodes go on elsewhere, with their finished turns.
package fleet
