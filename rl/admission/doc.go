// Package admission spreads rollouts over inference engines by the room in their KV caches.
//
// Glossary. An *engine* generates; its *capacity* is how many tokens its KV cache holds. A *rollout*
// is one trajectory. Its *reservation* is the most tokens that it can come to hold, prompt and
// response together. An engine whose reservations fit its capacity never has to *evict* a running
// rollout and compute its tokens again. K is the number of rollouts of the greatest length that an engine can
// hold without evictions. A rollout waits in one *queue*, first in first out, until it is *placed*. It then
// stays on its engine, where its prefix is cached. While a tool runs, the reservation is held. With
// ReleaseOnTool a long call *parks* the rollout: its room is freed, and when the tool has answered, the
// rollout waits for room on its engine, ahead of the queue.
//
// The scheduler is a state machine without a clock. Simulate drives it with given durations, and
// SimulateStatic is the baseline to compare with.
//
// Source: rStar2-Agent's load-balanced rollout scheduler. The paper describes it; no code was released. The
// paper says: estimate per engine how many rollouts cannot overflow its cache, let engines run
// independently, dispatch tool calls as they come, and assign new rollouts as soon as finished ones free
// cache. Everything else is this package's own design.
package admission
