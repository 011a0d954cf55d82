// Package metrics counts what a process does, and tells Prometheus.
//
// A *Process* is the registry of one process: programs make one and hand its parts to what they construct, so that
// tests have as many as they like and nothing is global. *Stages* counts the executions of stages, *Requests* those of
// the object store's requests, *Engines* the time in which engines work, and *Sandbox* the calls of a worker's own
// sandbox. Temporal's SDK counts through the handler that Temporal returns.
//
//	activities ──────Stages──┐
//	store/s3 ────────Requests┤
//	enginepool ──────Engines─┼─→ Process ─Handler→ GET /metrics
//	sandbox ─────────Sandbox─┤
//	Temporal's SDK ──────────┘
//
// Every label has few values: stages, operations, kinds of failure, queues. Runs are labels of internal/monitor alone,
// which says how many there are at most. A nil *Stages, *Requests or *Engines counts nothing, so that callers need
// not ask. Nothing that is counted here is read by a stage.
package metrics
