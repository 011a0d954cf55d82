// Package scheduler decides which engine of a rollout runs which episode, and when. It is a pure, event-driven state
// machine: the caller reports what has happened and the time, and carries out the decisions. It knows no clock, no
// goroutine and no engine, so a discrete-event simulation (internal/bench/simulate) and inference servers
// (package policy/servers) are driven by the same code.
//
// Glossary. An *engine* generates; its *capacity* is how many tokens of KV cache it gives out, and its *rows* are how
// many episodes it takes at once. An *episode* is one trajectory: turns of generation with tool calls between them. It
// *holds* the tokens of its prefix. A *stretch* is as much generation as an engine does before the scheduler is asked
// again: a part of a turn, or the rest of the episode where engines cannot stop. Its *reservation* is the room that is
// kept for it on its engine, by default what it can come to hold in its next stretch in the worst case (WorstStretch),
// so that no running episode is ever *evicted*; between two stretches it may have to wait for room. Its *home* is the
// engine that has its prefix in its cache. An *attempt* is one try at a turn; reports about earlier attempts are
// ignored and counted as *late*. While a tool runs, the episode's room is held. After Settings.Park seconds the episode
// is *parked*: its room is free, and the engine keeps its prefix only for as long as no one needs the memory. When the
// tool has answered, a parked episode *waits* for room on its home, for at most the time that its prefix would take to
// be computed elsewhere; then any engine may take it. A *straggler* is an engine much slower than the others. A *class*
// separates training from evaluation. To *drain* an engine is to empty it for new weights.
//
//	Submit ─▶ queue ─▶ Start ─▶ running ─ Ended ─▶ done
//	            ▲                 │  ▲
//	  Evicted,  │       TurnEnded │  │ Start at once, if its room was held
//	  Lost,     │                 ▼  │
//	  Cancel    └──────────────  calling ─ Park ─▶ parked ─ Returned ─▶ waiting ─▶ Start
//
// A caller whose episodes come and go says where the prefix of a new one is cached (Spec.Home), and forgets those that
// have ended (Withdrawn). An engine that has *failed* on an episode is not asked for it again while another one can be.
//
// All events of one moment are given to one call of Step, which puts them into a canonical order. So the decisions do
// not depend on the order in which simultaneous events were noticed.
//
// Order of service: on each engine first the episodes that wait to come home, then all episodes that any engine may
// take and that have finished turns, then the queues of the classes by their weights. Inside a queue the first is never
// overtaken, so no size of episode starves.
//
// Source: rStar2-Agent §3.2. The paper says: estimate per engine how many rollouts of the greatest length cannot
// overflow its cache (here Worst), dispatch tool calls as they come, and assign new rollouts when finished ones free
// cache. Its code was not released. Everything else is this package's own design.
package scheduler
