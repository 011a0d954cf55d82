// Package dashboards declares the dashboards of deploy/monitoring: what each panel asks Prometheus, once, for Grafana's
// files and for the test that every panel has data.
//
//	All → Dashboard.JSON (go test ./internal/testing/dashboards -update writes deploy/monitoring/dashboards)
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
	Celsius   Unit = "celsius"
	Watts     Unit = "watt"
	Hertz     Unit = "hertz"
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
	// Needs names what must be there, and in use, for the panel to have data: "", or gpu, serve or cells (a sandbox
	// service's sessions).
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
	Doc: "Runs, task queues, stages, the store and Temporal's client of all processes.",
	Panels: []Panel{
		{Title: "Open runs", Doc: "By state. Parked runs wait for a person.", Unit: Number,
			Queries: []Query{{"max by (state) (ropewalk_runs)", "{{state}}"},
				{"max(ropewalk_runs_unlisted)", "without figures, because there are too many"}}},
		{Title: "Steps of the runs", Unit: Number, Queries: one("max by (run) (ropewalk_run_step)", "{{run}}")},
		{Title: "Success on held-out problems", Unit: Ratio,
			Queries: one("max by (run) (ropewalk_run_heldout_success_ratio)", "{{run}}")},
		{Title: "Since a run last moved", Doc: "Seconds since its step, stage or work was seen to change.",
			Unit:    Seconds,
			Queries: one("time() - max by (run) (ropewalk_run_progress_timestamp_seconds)", "{{run}}")},
		{Title: "States that runs enter", Doc: "As workers noted them.", Unit: PerSecond,
			Queries: one(rate("ropewalk_run_states_total", "state"), "{{state}}")},
		{Title: "Tasks that wait", Unit: Number,
			Queries: one("max by (queue, kind) (ropewalk_queue_backlog)", "{{queue}} {{kind}}")},
		{Title: "Age of the oldest task", Unit: Seconds,
			Queries: one("max by (queue, kind) (ropewalk_queue_age_seconds)", "{{queue}} {{kind}}")},
		{Title: "Workers that poll", Unit: Number,
			Queries: one("max by (queue, kind) (ropewalk_queue_pollers)", "{{queue}} {{kind}}")},
		{Title: "Stages committed", Unit: PerSecond,
			Queries: one(rate("ropewalk_stage_committed_total", "stage"), "{{stage}}")},
		{Title: "Stages at work", Doc: "Executions that run now.", Unit: Number,
			Queries: one("sum by (stage) (ropewalk_stage_running)", "{{stage}}")},
		{Title: "Stages started, retried, adopted, failed", Unit: PerSecond, Queries: []Query{
			{"sum(rate(ropewalk_stage_started_total[$window]))", "started"},
			{"sum(rate(ropewalk_stage_retried_total[$window]))", "retried"},
			{"sum(rate(ropewalk_stage_adopted_total[$window]))", "adopted"},
			{"sum(rate(ropewalk_stage_failed_total[$window])) or vector(0)", "failed"},
		}},
		{Title: "Duration of stages", Doc: "Mean of those that did their work.", Unit: Seconds,
			Queries: one(mean("ropewalk_stage_seconds", "stage"), "{{stage}}")},
		{Title: "Rows committed", Unit: PerSecond,
			Queries: one(rate("ropewalk_stage_rows_total", "stage"), "{{stage}}")},
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
		{Title: "Processes", Doc: "By kind and version.", Unit: Number,
			Queries: one("count by (kind, version) (ropewalk_process_info)", "{{kind}} {{version}}")},
		{Title: "Since the monitor's servers answered", Unit: Seconds,
			Queries: one("time() - max by (instance) (ropewalk_monitor_refresh_timestamp_seconds)", "{{instance}}")},
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
		{Title: "Step", Unit: Number, Queries: []Query{{ofRun("step"), "step"}, {ofRun("steps"), "of"},
			{ofRun("finished_step"), "finished"}}},
		{Title: "State", Doc: "1 for the state of the run.", Unit: Number,
			Queries: one(`max by (state) (ropewalk_run_state{run="$run"})`, "{{state}}")},
		{Title: "Stage", Doc: "1 for the stage that the run is in.", Unit: Number,
			Queries: one(`max by (stage) (ropewalk_run_stage{run="$run"})`, "{{stage}}")},
		{Title: "Since the run was started or resumed", Unit: Seconds,
			Queries: one("time() - "+ofRun("started_timestamp_seconds"), "run")},
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
		{Title: "Cells by verdict", Unit: PerSecond, Needs: "cells",
			Queries: one(rate("ropewalk_sandbox_cells_total", "status"), "{{status}}")},
		{Title: "Time of a cell", Unit: Seconds, Needs: "cells",
			Queries: one(mean("ropewalk_sandbox_cell_seconds", "instance"), "{{instance}}")},
		{Title: "Connections of services", Unit: Number,
			Queries: one("ropewalk_sandbox_connections", "{{instance}}")},
		{Title: "Services that drain", Doc: "1 while a service accepts no calls.", Unit: Number,
			Queries: one("ropewalk_sandbox_draining", "{{instance}}")},
		{Title: "Interpreters replaced", Doc: "Because of their age.", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_recycled_zygotes_total", "instance"), "{{instance}}")},
		{Title: "Answers to clients", Doc: "Calls and cells.", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_client_answers_total", "client"), "{{client}}")},
		{Title: "Processors of clients", Doc: "Cores that their calls and cells use.", Unit: Number,
			Queries: one(rate("ropewalk_sandbox_client_cpu_seconds_total", "client"), "{{client}}")},
		{Title: "Quotas of clients", Doc: "Requests that were refused or had to wait, by limit.", Unit: PerSecond,
			Queries: one(rate("ropewalk_sandbox_client_limited_total", "client, limit"), "{{client}} {{limit}}")},
		{Title: "Calls of clients", Doc: "Those that wait or run now.", Unit: Number,
			Queries: one("sum by (client) (ropewalk_sandbox_client_calls)", "{{client}}")},
		{Title: "Sessions of clients", Unit: Number,
			Queries: one("sum by (client) (ropewalk_sandbox_client_sessions)", "{{client}}")},
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
		{Title: "Tokens a second of an engine", Doc: "Of the latest execution of a stage, where it is measured.",
			Unit: PerSecond, Needs: "gpu", Queries: one("ropewalk_engine_tokens_per_second", "{{instance}} {{stage}}")},
		{Title: "Devices at work", Doc: "Share of the latest execution of a stage, where the engine measures it.",
			Unit: Ratio, Needs: "gpu", Queries: one("ropewalk_engine_busy_ratio", "{{instance}} {{stage}}")},
		{Title: "Most memory of an engine", Unit: Bytes, Needs: "gpu",
			Queries: one("ropewalk_engine_memory_peak_bytes", "{{instance}} {{stage}}")},
		{Title: "Device memory", Unit: Bytes, Needs: "gpu",
			Queries: []Query{{"ropewalk_gpu_memory_used_bytes", "{{instance}} {{gpu}} in use"},
				{"ropewalk_gpu_memory_total_bytes", "{{instance}} {{gpu}} all"}}},
		{Title: "Device utilisation", Doc: "Share of the time in which something ran, or used memory.", Unit: Ratio,
			Needs: "gpu", Queries: []Query{{"ropewalk_gpu_utilisation_ratio", "{{instance}} {{gpu}}"},
				{"ropewalk_gpu_memory_utilisation_ratio", "{{instance}} {{gpu}} memory"}}},
		{Title: "Processes on devices", Unit: Number, Needs: "gpu",
			Queries: one("ropewalk_gpu_processes", "{{instance}} {{gpu}}")},
		{Title: "Device temperature", Unit: Celsius, Needs: "gpu",
			Queries: one("ropewalk_gpu_temperature_celsius", "{{instance}} {{gpu}}")},
		{Title: "Device power", Unit: Watts, Needs: "gpu",
			Queries: []Query{{"ropewalk_gpu_power_watts", "{{instance}} {{gpu}} drawn"},
				{"ropewalk_gpu_power_limit_watts", "{{instance}} {{gpu}} limit"}}},
		{Title: "Device clocks", Unit: Hertz, Needs: "gpu",
			Queries: []Query{{"ropewalk_gpu_sm_clock_hertz", "{{instance}} {{gpu}} processors"},
				{"ropewalk_gpu_memory_clock_hertz", "{{instance}} {{gpu}} memory"}}},
		{Title: "Lowered clocks", Doc: "Share of the last ten minutes.", Unit: Ratio, Needs: "gpu",
			Queries: one("ropewalk_gpu_throttled_ratio", "{{instance}} {{gpu}} {{by}}")},
		{Title: "Reasons for lower clocks", Doc: "1 for each reason.", Unit: Number, Needs: "gpu",
			Queries: one("max by (instance, gpu, reason) (ropewalk_gpu_clock_reason)",
				"{{instance}} {{gpu}} {{reason}}")},
		{Title: "Errors of device memory", Doc: "Since the driver was loaded.", Unit: Number, Needs: "gpu",
			Queries: []Query{{"ropewalk_gpu_ecc_corrected_total", "{{instance}} {{gpu}} corrected"},
				{"ropewalk_gpu_ecc_uncorrected_total", "{{instance}} {{gpu}} uncorrected"}}},
		{Title: "Replaced rows of device memory", Doc: "By the errors that they had. Pending rows wait for a reset.",
			Unit: Number, Needs: "gpu", Queries: []Query{
				{"ropewalk_gpu_remapped_rows_corrected_total", "{{instance}} {{gpu}} corrected"},
				{"ropewalk_gpu_remapped_rows_uncorrected_total", "{{instance}} {{gpu}} uncorrected"},
				{"ropewalk_gpu_row_remap_pending", "{{instance}} {{gpu}} pending"},
				{"ropewalk_gpu_row_remap_failed", "{{instance}} {{gpu}} failed"}}},
		{Title: "NVLinks", Unit: Number, Needs: "gpu", Queries: []Query{
			{"ropewalk_gpu_nvlinks_active", "{{instance}} {{gpu}} up"},
			{"ropewalk_gpu_nvlinks", "{{instance}} {{gpu}} all"}}},
		{Title: "Leased devices", Doc: "1 while a process has the device leased.", Unit: Number, Needs: "gpu",
			Queries: []Query{{"ropewalk_gpu_leased", "{{instance}} {{gpu}}"},
				{"ropewalk_gpu_lease_waiting", "{{instance}} requests that wait"}}},
		{Title: "Leases", Unit: PerSecond, Needs: "gpu", Queries: []Query{
			{rate("ropewalk_gpu_leases_total", "instance"), "{{instance}} taken"},
			{rate("ropewalk_gpu_leases_failed_total", "instance"), "{{instance}} lost a device"}}},
		{Title: "Device health", Doc: "1 for the state of each device.", Unit: Number, Needs: "gpu",
			Queries: one("ropewalk_gpu_state == 1", "{{instance}} {{gpu}} {{state}}")},
		{Title: "Xids", Unit: PerSecond, Needs: "gpu",
			Queries: one("sum by (instance, gpu) (rate(ropewalk_gpu_xids_total[$window]))", "{{instance}} {{gpu}}")},
		{Title: "Requests to model servers", Unit: PerSecond, Needs: "serve",
			Queries: one(rate("ropewalk_serve_requests_total", "path, status"), "{{path}} {{status}}")},
		{Title: "Time to the first token", Unit: Seconds, Needs: "serve",
			Queries: one(mean("ropewalk_serve_time_to_first_token_seconds", "instance"), "{{instance}}")},
		{Title: "Answers of model servers", Doc: "Mean time from a request to the end of its answer.", Unit: Seconds,
			Needs: "serve", Queries: one(mean("ropewalk_serve_request_seconds", "path"), "{{path}}")},
		{Title: "Responses of model servers", Unit: Number, Needs: "serve", Queries: []Query{
			{"ropewalk_serve_rows", "{{instance}} are generated"},
			{"ropewalk_serve_queued_rows", "{{instance}} wait"}}},
		{Title: "Tokens of model servers", Unit: PerSecond, Needs: "serve", Queries: []Query{
			{rate("ropewalk_serve_generated_tokens_total", "instance"), "{{instance}} sampled"},
			{rate("ropewalk_serve_prompt_tokens_total", "instance"), "{{instance}} read"},
			{rate("ropewalk_serve_prompt_tokens_reused_total", "instance"), "{{instance}} reused"}}},
		{Title: "KV caches of model servers", Doc: "Tokens.", Unit: Number, Needs: "serve", Queries: []Query{
			{"ropewalk_serve_kv_tokens", "{{instance}} room"},
			{"ropewalk_serve_kv_held_tokens", "{{instance}} reserved"},
			{"ropewalk_serve_kv_kept_tokens", "{{instance}} kept for later prompts"}}},
		{Title: "Weights loaded by model servers", Unit: PerSecond, Needs: "serve",
			Queries: one(rate("ropewalk_serve_loads_total", "instance"), "{{instance}}")},
	},
}
