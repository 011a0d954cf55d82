// Package monitor asks Temporal how runs and task queues are, and tells Prometheus.
//
// A *Monitor* refreshes a *snapshot* every few seconds: the open runs with their state, step and latest figures, the
// backlog, age and pollers of each task queue, and how long Temporal and the bucket keep what they have. It reads what
// the servers know and not what one process has seen, so it may run anywhere, several may run at once, and none is
// missed while it restarts.
//
//	Temporal, bucket ─Refresh→ snapshot ─Collect→ GET /metrics
//
// Runs are labels, and Options.MostRuns bounds them: parked runs come first, then the newest. ropewalk_runs_unlisted
// counts the others. A series ends when its run does.
package monitor
