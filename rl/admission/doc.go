// Package admission spreads rollouts over inference engines by the room in their KV caches.
//
// Glossary. An *engine* generates; its *capacity* is how many tokens its KV cache holds. A *rollout*
// is one trajectory. Its *reservation* is the most tokens that it can come to hold, prompt and
// response together: an engine whose reservations fit its capacity never has to *evict* a running
// rollout and compute its tokens again. K is how many rollouts of the greatest length an engine can
// take so. A rollout waits in one *queue*, first in first out, until it is *placed*, and stays on
// its engine for life, where its prefix is cached. While a tool runs the reservation is held; with
// ReleaseOnTool a long call *parks* the rollout: its room is freed, and it waits for room on its
// engine, ahead of the queue, when the tool has answered.
//
// The scheduler is a state machine without a clock; Simulate drives it through made-up durations,
// and SimulateStatic is the baseline that it is measured against.
//
// Source: rStar2-Agent's load-balanced rollout scheduler, which the paper describes and nobody
// released. The paper says: estimate per engine how many rollouts cannot overflow its cache, let
// engines run independently, dispatch tool calls as they come, and assign new rollouts as soon as
// finished ones free cache. Everything beyond that is this package's.
package admission
