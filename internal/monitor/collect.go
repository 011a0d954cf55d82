package monitor

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

func desc(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("ropewalk_"+name, help, labels, nil)
}

var (
	up        = desc("monitor_up", "1 if the latest refresh succeeded.")
	refreshed = desc("monitor_refresh_timestamp_seconds", "When the servers last answered.")
	byState   = desc("runs", "Open runs, by state.", "state")
	unlisted  = desc("runs_unlisted", "Open runs that are no labels, because there are too many.")

	info   = desc("run_info", "1, labelled with what the run is.", "run", "workflow", "recipe")
	state  = desc("run_state", "1, labelled with the state of an open run.", "run", "state")
	parked = desc("run_parked", "1 for a run that waits for a person: where it failed and why.", "run", "stage",
		"kind")
	stage   = desc("run_stage", "1, labelled with the stage that the run is in.", "run", "stage")
	started = desc("run_started_timestamp_seconds", "When the run was started or resumed.", "run")
	moved   = desc("run_progress_timestamp_seconds",
		"When the run's step, stage or work was last seen to change. It begins with the monitor.", "run")
	step    = desc("run_step", "The step that the run is in; 0 before the first.", "run")
	heldOut = desc("run_heldout_success_ratio", "Latest success on held-out problems.", "run")

	backlog   = desc("queue_backlog", "Tasks that wait.", "queue", "kind")
	age       = desc("queue_age_seconds", "Age of the oldest task that waits.", "queue", "kind")
	pollers   = desc("queue_pollers", "Workers that poll.", "queue", "kind")
	retention = desc("retention_seconds", "How long what is finished is kept: by Temporal (closed workflows) and by "+
		"the bucket's lifecycle rules, if it has any (objects of the record).", "what")
)

// figure is a number of a run's latest finished step.
type figure struct {
	desc *prometheus.Desc
	of   func(l workflows.StepLine) *float64 // nil: it has none
}

// steps is the run's number of steps, which figures of the steps are compared with.
var steps = desc("run_steps", "Steps that the run is to take.", "run")

var figures = []figure{
	{desc("run_finished_step", "The latest finished step, which the figures below are of.", "run"),
		func(l workflows.StepLine) *float64 { return new(float64(l.Step)) }},
	{desc("run_reward", "Mean reward of the step's trajectories.", "run"),
		func(l workflows.StepLine) *float64 { return &l.Reward }},
	{desc("run_success_ratio", "Share of the step's trajectories that succeeded.", "run"),
		func(l workflows.StepLine) *float64 { return &l.Success }},
	{desc("run_entropy_nats", "Mean entropy of the policy's tokens.", "run"),
		func(l workflows.StepLine) *float64 { return l.Entropy }},
	{desc("run_kl_nats", "Mean divergence of the updated policy from the one that sampled.", "run"),
		func(l workflows.StepLine) *float64 { return &l.KL }},
	{desc("run_clip_ratio", "Share of the tokens whose ratio was clipped.", "run"),
		func(l workflows.StepLine) *float64 { return &l.ClipFraction }},
	{desc("run_gradient_norm", "Norm of the gradient before clipping.", "run"),
		func(l workflows.StepLine) *float64 { return l.GradNorm }},
	{desc("run_tool_error_ratio", "Share of failed calls in successful trajectories.", "run"),
		func(l workflows.StepLine) *float64 { return &l.ToolErrorPositive }},
	{desc("run_step_seconds", "Duration of the step.", "run"),
		func(l workflows.StepLine) *float64 { return &l.Seconds }},
	{desc("run_step_tokens", "Tokens that the step generated.", "run"),
		func(l workflows.StepLine) *float64 { return new(float64(l.Tokens)) }},
	{desc("run_step_excluded", "Trajectories of the step that were excluded because something broke.", "run"),
		func(l workflows.StepLine) *float64 { return new(float64(l.Excluded)) }},
}

// stageSeconds is the time of each stage of the latest finished step.
var stageSeconds = desc("run_stage_seconds", "Time of a stage of the latest finished step.", "run", "stage")

// Describe implements prometheus.Collector.
func (m *Monitor) Describe(out chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{up, refreshed, byState, unlisted, info, state, parked, stage, started, moved,
		step, heldOut, steps, backlog, age, pollers, retention, stageSeconds} {
		out <- d
	}
	for _, f := range figures {
		out <- f.desc
	}
}

// Collect implements prometheus.Collector. It asks no server.
func (m *Monitor) Collect(out chan<- prometheus.Metric) {
	m.mu.Lock()
	s := m.last
	m.mu.Unlock()
	gauge := func(d *prometheus.Desc, value float64, labels ...string) {
		out <- prometheus.MustNewConstMetric(d, prometheus.GaugeValue, value, labels...)
	}
	gauge(up, truth(s.up))
	if s.at.IsZero() {
		return
	}
	gauge(refreshed, seconds(s.at))
	for _, name := range []string{schema.StateRunning, schema.StatePaused, schema.StateParked} {
		gauge(byState, float64(s.states[name]), name)
	}
	gauge(unlisted, float64(s.open-len(s.runs)))
	for _, r := range s.runs {
		r.collect(gauge)
	}
	for _, q := range s.queues {
		gauge(backlog, float64(q.backlog), q.name, q.kind)
		gauge(age, q.age.Seconds(), q.name, q.kind)
		gauge(pollers, float64(q.pollers), q.name, q.kind)
	}
	for what, kept := range s.retention {
		gauge(retention, kept.Seconds(), what)
	}
}

func (r run) collect(gauge func(d *prometheus.Desc, value float64, labels ...string)) {
	recipe := ""
	if r.figures != nil {
		recipe = r.figures.Recipe
	}
	gauge(info, 1, r.id, r.workflow, recipe)
	gauge(state, 1, r.id, r.state)
	if r.state == schema.StateParked {
		where := r.stage
		if r.figures != nil && r.figures.Parked != nil && len(r.figures.Parked.Failures) > 0 {
			where = r.figures.Parked.Failures[0].Stage
		}
		gauge(parked, 1, r.id, where, r.failure)
	}
	gauge(stage, 1, r.id, r.stage)
	gauge(started, seconds(r.started), r.id)
	gauge(moved, seconds(r.moved), r.id)
	gauge(step, float64(r.step), r.id)
	if r.heldOut != nil {
		gauge(heldOut, *r.heldOut, r.id)
	}
	if r.figures == nil {
		return
	}
	gauge(steps, float64(r.figures.Steps), r.id)
	if len(r.figures.Lines) == 0 {
		return
	}
	line := r.figures.Lines[len(r.figures.Lines)-1]
	for _, f := range figures {
		if v := f.of(line); v != nil {
			gauge(f.desc, *v, r.id)
		}
	}
	for name, took := range line.StageSeconds {
		gauge(stageSeconds, took, r.id, name)
	}
}

func seconds(t time.Time) float64 { return float64(t.UnixMilli()) / 1000 }

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
