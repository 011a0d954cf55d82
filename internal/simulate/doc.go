// Package simulate predicts how long a rollout takes under the decisions of package scheduler, and under the static
// allocation that they replace. It is a discrete-event simulation: every turn, tool call, failure and decision is an
// event, and what happens between events follows from a formula.
//
// Glossary. A *workload* is engines, rollouts, tools and failures (Workload). A *rollout* is one episode with the
// lengths that it turns out to have; no scheduler is told them before. A *model* says how fast an engine is (Model). An
// engine's *rows* are the turns that it decodes at once. The *makespan* is the time from the start to the last answer
// and its verification. The *bound* is a time that no schedule can beat (Bound). *Static* allocation gives every engine
// an equal part of the rollouts at the start.
//
//	YAML file, preset, run's record → Workload ─Draw→ rollouts ─┬─ Dynamic → Result
//	                                                           ├─ Static  → Result
//	                                                           └─ Bound
//
// # The model of an engine
//
// One decode step gives every row one token and takes
//
//	base + row · (rows) + context · (tokens that the rows' caches hold)
//
// seconds: reading the weights, the arithmetic of each row, and reading the caches. A prefix, or the part of it that is
// not cached, is computed at a constant rate, before the engine decodes on (no chunks). The cache holds kv_tokens; what
// running rows do not use keeps the prefixes of episodes that wait for their tools, the oldest of which are dropped
// first. All of this scales with the engine's speed.
//
// # What is assumed
//
//   - A step's time depends on nothing else: no cost of scheduling in the engine, no noise, no speculative decoding.
//   - The prompt that a group's rollouts share is computed for each of them, by every schedule.
//   - An engine that drops a running row keeps its text; only the cache is computed again. Static allocation gains most
//     by this.
//   - An engine that is lost loses the turns in progress; their finished turns and their tools' answers survive.
//   - Static allocation after a lost engine: its rollouts are spread over the others at once. The papers' systems would
//     end the step.
//   - What a tool does takes its drawn time on any executor; only queues add to it.
package simulate
