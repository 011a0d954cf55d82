// Package dashboards declares the dashboards of deploy/monitoring: what each panel asks Prometheus, once, for Grafana's
// files, for the figures in docs and for the test that every panel has data.
//
//	All → Dashboard.JSON (go test ./internal/dashboards -update writes deploy/monitoring/dashboards)
//	    → draw (go run ./internal/dashboards/draw) → docs/monitoring/*.svg
package dashboards

import "strings"

// Unit says how a panel's values are written, in Grafana's words.
type Unit string

// The units.
const (
	Number    Unit = "short"
	Ratio     Unit = "percentunit" // of 0…1
	Seconds   Unit = "s"
	Bytes     Unit = "bytes"
	ByteRate  Unit = "Bps"
	PerSecond Unit = "ops"
)

// Dashboard is one page of panels.
type Dashboard struct {
	Name, Title, Doc string
	// OneRun says that the page is about the run that its user chooses: $run in the queries.
	OneRun bool
	Panels []Panel
}

// Panel is one figure over time.
type Panel struct {
	Title, Doc string
	Unit       Unit
	Queries    []Query
	// Needs names what must be there, and in use, for the panel to have data: "", or gpu, presigner or serve.
	Needs string
}

// Query is an expression of PromQL and the name of its series: Grafana's template with {{label}}. $run and $window are
// replaced: by the chosen run, and by a time that holds several scrapes.
type Query struct{ Expr, Legend string }

// For returns the expression for a run and a window such as 5m.
func (q Query) For(run, window string) string {
	return strings.NewReplacer("$run", run, "$window", window).Replace(q.Expr)
}

// one is the queries of a panel that has one.
func one(expr, legend string) []Query { return []Query{{expr, legend}} }

// rate is the sum of a counter's rates by labels.
func rate(counter, by string) string { return "sum by (" + by + ") (rate(" + counter + "[$window]))" }

// mean is the mean of a histogram's values by labels.
func mean(histogram, by string) string {
	return rate(histogram+"_sum", by) + " / " + rate(histogram+"_count", by)
}

// All returns the dashboards.
func All() []Dashboard { return []Dashboard{overview, run, sandboxes, engines} }

var overview = Dashboard{
	Name: "overview", Title: "Ropewalk: overview",
	Doc: "Runs, task queues, stages, the store, presigners and Temporal's client of all processes.",
	Panels: []Panel{
		{Title: "Open runs", Doc: "By state. Parked runs wait for a person.", Unit: Number,
			Queries: one("max by (state) (ropewalk_runs)", "{{state}}")},
		{Title: "Steps of the runs", Unit: Number, Queries: one("max by (run) (ropewalk_run_step)", "{{run}}")},
		{Title: "Success on held-out problems", Unit: Ratio,
			Queries: one("max by (run) (ropewalk_run_heldout_success_ratio)", "{{run}}")},
		{Title: "Since a run last moved", Doc: "Seconds since its step, stage or work was seen to change.",
			Unit:    Seconds,
			Queries: one("time() - max by (run) (ropewalk_run_progress_timestamp_seconds)", "{{run}}")},
		{Title: "Tasks that wait", Unit: Number,
			Queries: one("max by (queue, kind) (ropewalk_queue_backlog)", "{{queue}} {{kind}}")},
		{Title: "Age of the oldest task", Unit: Seconds,
			Queries: one("max by (queue, kind) (ropewalk_queue_age_seconds)", "{{queue}} {{kind}}")},
		{Title: "Workers that poll", Unit: Number,
			Queries: one("max by (queue, kind) (ropewalk_queue_pollers)", "{{queue}} {{kind}}")},
		{Title: "Stages committed", Unit: PerSecond,
			Queries: one(rate("ropewalk_stage_committed_total", "stage"), "{{stage}}")},
		{Title: "Stages retried, adopted, failed", Unit: PerSecond, Queries: []Query{
			{"sum(rate(ropewalk_stage_retried_total[$window]))", "retried"},
			{"sum(rate(ropewalk_stage_adopted_total[$window]))", "adopted"},
			{"sum(rate(ropewalk_stage_failed_total[$window])) or vector(0)", "failed"},
		}},
		{Title: "Duration of stages", Doc: "Mean of those that did their work.", Unit: Seconds,
			Queries: one(mean("ropewalk_stage_seconds", "stage"), "{{stage}}")},
		{Title: "Bytes committed", Unit: ByteRate,
			Queries: one(rate("ropewalk_stage_bytes_total", "stage"), "{{stage}}")},
		{Title: "Requests to the store", Unit: PerSecond,
			Queries: one(rate("ropewalk_store_requests_total", "operation"), "{{operation}}")},
		{Title: "Errors of the store", Unit: PerSecond,
			Queries: one(rate("ropewalk_store_errors_total", "kind"), "{{kind}}")},
		{Title: "Answers of the store", Doc: "Mean time until an answer begins.", Unit: Seconds,
			Queries: one(mean("ropewalk_store_request_seconds", "operation"), "{{operation}}")},
		{Title: "Bytes to and from the store", Unit: ByteRate, Queries: []Query{
			{"sum(rate(ropewalk_store_sent_bytes_total[$window]))", "sent"},
			{"sum(rate(ropewalk_store_received_bytes_total[$window]))", "received"}}},
		{Title: "Questions to presigners", Doc: "By answer. All but signed are refusals.", Unit: PerSecond,
			Needs: "presigner", Queries: one(rate("ropewalk_presign_requests_total", "outcome"), "{{outcome}}")},
		{Title: "Answers of presigners", Doc: "Mean time from a question to its answer.", Unit: Seconds,
			Needs: "presigner", Queries: one(mean("ropewalk_presign_request_seconds", "instance"), "{{instance}}")},
		{Title: "Schedule to start", Doc: "Mean time that an activity's task waited, as Temporal's SDK counts it.",
			Unit: Seconds, Queries: one(mean("temporal_activity_schedule_to_start_latency_seconds", "task_queue"),
				"{{task_queue}}")},
		{Title: "Requests to Temporal", Unit: PerSecond,
			Queries: one(rate("temporal_request_total", "operation"), "{{operation}}")},
		{Title: "Workflows kept in memory", Unit: Number,
			Queries: one("max by (instance) (temporal_sticky_cache_size)", "{{instance}}")},
		{Title: "Memory of the processes", Unit: Bytes,
			Queries: one(`process_resident_memory_bytes{job=~"ropewalk-.*"}`, "{{job}} {{instance}}")},
		{Title: "CPU of the processes", Doc: "Cores in use.", Unit: Number,
			Queries: one(`rate(process_cpu_seconds_total{job=~"ropewalk-.*"}[$window])`, "{{job}} {{instance}}")},
		{Title: "Retention", Doc: "How long Temporal and the bucket keep what is finished.", Unit: Seconds,
			Queries: one("min by (what) (ropewalk_retention_seconds)", "{{what}}")},
	},
}

// ofRun is a figure of the chosen run.
func ofRun(name string) string { return `max(ropewalk_run_` + name + `{run="$run"})` }

var run = Dashboard{
	Name: "run", Title: "Ropewalk: one run", OneRun: true,
	Doc: "The figures of one run's latest finished step, and where the time of its steps goes.",
	Panels: []Panel{
		{Title: "Step", Unit: Number, Queries: []Query{{ofRun("step"), "step"}, {ofRun("steps"), "of"}}},
		{Title: "Reward", Unit: Number, Queries: one(ofRun("reward"), "mean of the step")},
		{Title: "Success", Unit: Ratio, Queries: []Query{{ofRun("success_ratio"), "of the step"},
			{ofRun("heldout_success_ratio"), "on held-out problems"}}},
		{Title: "Entropy", Doc: "Nats per token.", Unit: Number, Queries: one(ofRun("entropy_nats"), "entropy")},
		{Title: "Divergence", Doc: "Nats per token, from the policy that sampled.", Unit: Number,
			Queries: one(ofRun("kl_nats"), "KL")},
		{Title: "Gradient", Unit: Number, Queries: one(ofRun("gradient_norm"), "norm before clipping")},
		{Title: "Clipped ratios", Unit: Ratio, Queries: one(ofRun("clip_ratio"), "share of tokens")},
		{Title: "Failed calls of successful trajectories", Unit: Ratio,
			Queries: one(ofRun("tool_error_ratio"), "share")},
		{Title: "Excluded trajectories", Unit: Number, Queries: one(ofRun("step_excluded"), "of the step")},
		{Title: "Tokens of a step", Unit: Number, Queries: one(ofRun("step_tokens"), "generated")},
		{Title: "Duration of a step", Unit: Seconds, Queries: one(ofRun("step_seconds"), "step")},
		{Title: "Time of the stages", Unit: Seconds,
			Queries: one(`max by (stage) (ropewalk_run_stage_seconds{run="$run"})`, "{{stage}}")},
	},
}

var sandboxes = Dashboard{
	Name: "sandbox", Title: "Ropewalk: sandbox",
	Doc: "Calls of workers' own sandboxes and of sandbox services.",
	Panels: []Panel{
		{Title: "Calls by verdict", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_calls_total", "status"), "{{status}}")},
		{Title: "Tier", Doc: "1 for the tier that calls get.", Unit: Number,
			Queries: one("max by (instance, tier) (ropewalk_sandbox_tier) == 1", "{{instance}} {{tier}}")},
		{Title: "Waiting time of a call", Unit: Seconds,
			Queries: one(mean("ropewalk_sandbox_queue_seconds", "instance"), "{{instance}}")},
		{Title: "Time of a call", Unit: Seconds,
			Queries: one(mean("ropewalk_sandbox_service_seconds", "instance"), "{{instance}}")},
		{Title: "Slots", Unit: Number, Queries: []Query{
			{"sum(ropewalk_sandbox_busy)", "busy"}, {"sum(ropewalk_sandbox_workers)", "all"}}},
		{Title: "Children started", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_forks_total", "instance"), "{{instance}}")},
		{Title: "Calls set aside", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_aside_total", "instance"), "{{instance}}")},
		{Title: "Calls that wait in services", Unit: Number,
			Queries: one("ropewalk_sandbox_queue_calls", "{{instance}}")},
		{Title: "Queue of services", Doc: "Bytes that wait, of those that may.", Unit: Ratio,
			Queries: one("ropewalk_sandbox_queue_bytes / ropewalk_sandbox_queue_capacity_bytes", "{{instance}}")},
		{Title: "Sessions of services", Unit: Number, Queries: one("ropewalk_sandbox_sessions", "{{instance}}")},
		{Title: "Connections of services", Unit: Number,
			Queries: one("ropewalk_sandbox_connections", "{{instance}}")},
	},
}

var engines = Dashboard{
	Name: "engines", Title: "Ropewalk: engines",
	Doc: "What engines sample and train, and the devices that they run on.",
	Panels: []Panel{
		{Title: "Tokens of stages", Unit: PerSecond, Queries: one(
			`sum by (stage) (rate(ropewalk_stage_tokens_total{stage=~"rollout|update|logprobs|evaluate"}[$window]))`,
			"{{stage}}")},
		{Title: "Tokens a second of sampling", Doc: "Tokens of rollouts by the time in which an engine sampled.",
			Unit: PerSecond, Queries: one(`sum(rate(ropewalk_stage_tokens_total{stage="rollout"}[$window]))`+
				` / sum(rate(ropewalk_engine_seconds_total{work="sample"}[$window]))`, "tokens/s")},
		{Title: "Tokens a second of training", Doc: "Tokens of updates by the time in which an engine trained.",
			Unit: PerSecond, Queries: one(`sum(rate(ropewalk_stage_tokens_total{stage="update"}[$window]))`+
				` / sum(rate(ropewalk_engine_seconds_total{work="train"}[$window]))`, "tokens/s")},
		{Title: "Engines at work", Doc: "Share of the time in which a stage had the engine.", Unit: Ratio,
			Queries: one(rate("ropewalk_engine_seconds_total", "instance, device, work"),
				"{{instance}} {{device}} {{work}}")},
		{Title: "Checkpoints loaded", Unit: PerSecond,
			Queries: one(rate("ropewalk_engine_loads_total", "instance, device"), "{{instance}} {{device}}")},
		{Title: "MFU", Doc: "Of the latest execution of a stage, where the engine measures it.", Unit: Ratio,
			Needs: "gpu", Queries: one("ropewalk_engine_mfu_ratio", "{{instance}} {{stage}}")},
		{Title: "Most memory of an engine", Unit: Bytes, Needs: "gpu",
			Queries: one("ropewalk_engine_memory_peak_bytes", "{{instance}} {{stage}}")},
		{Title: "Device memory", Unit: Bytes, Needs: "gpu",
			Queries: one("ropewalk_gpu_memory_used_bytes", "{{instance}} {{gpu}}")},
		{Title: "Device utilisation", Unit: Ratio, Needs: "gpu",
			Queries: one("ropewalk_gpu_utilisation_ratio", "{{instance}} {{gpu}}")},
		{Title: "Device health", Doc: "1 for the state of each device.", Unit: Number, Needs: "gpu",
			Queries: one("ropewalk_gpu_state == 1", "{{instance}} {{gpu}} {{state}}")},
		{Title: "Xids", Unit: PerSecond, Needs: "gpu",
			Queries: one("sum by (instance, gpu) (rate(ropewalk_gpu_xids_total[$window]))", "{{instance}} {{gpu}}")},
		{Title: "Requests to model servers", Unit: PerSecond, Needs: "serve",
			Queries: one(rate("ropewalk_serve_requests_total", "path, status"), "{{path}} {{status}}")},
		{Title: "Time to the first token", Unit: Seconds, Needs: "serve",
			Queries: one(mean("ropewalk_serve_time_to_first_token_seconds", "instance"), "{{instance}}")},
	},
}
