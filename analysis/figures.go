package analysis

import (
	"context"
	"time"

	"github.com/ropewalk/ropewalk/schema"
)

// Stages of measured times of activities: of a step, and of a run outside its steps.
const (
	timingsStep = "timings_step"
	timingsRun  = "timings_run"
)

// kindActivity is the timings' kind for an activity execution.
const kindActivity = "activity"

// longestGap is the longest gap between activities that counts as the run's time: a dead worker is noticed after it.
const longestGap = 10 * time.Second

// RunFigures tells how much a run did and how it spent its time, in seconds.
type RunFigures struct {
	Trajectories int64 // assembled over all steps
	Excluded     int64 // over all steps; those of skipped shards were never assembled
	ToolCalls    int64 // executed over all steps
	Tokens       int64 // sampled over all steps
	// RLSeconds is the window from the first prompts stage's start to the last publish stage's end,
	// without standstills and the time in which nothing but an evaluation ran.
	RLSeconds float64
	// StandstillSeconds adds up the gaps of more than longestGap inside the window in which nothing
	// executed: the run was paused, parked or interrupted.
	StandstillSeconds float64
	WarmStartSeconds  float64
	EvalSeconds       float64
	// StageSeconds holds for each stage the time, inside the window, in which at least one of its
	// activities executed. Stages overlap, so the sum may exceed RLSeconds.
	StageSeconds map[string]float64
	// OrchestrationShare is the part of RLSeconds in which no activity executed.
	OrchestrationShare float64
}

// Figures measures a run's times from its timings table and counts its work from its manifests, without the steps that
// it shares with another run.
func (r *Record) Figures(ctx context.Context, run string) (RunFigures, error) {
	v, err := r.Visible(ctx, run)
	if err != nil {
		return RunFigures{}, err
	}
	v = v.alone(ctx)
	rows, err := v.timings(ctx)
	if err != nil {
		return RunFigures{}, err
	}
	out := Measure(rows)
	return out, out.count(ctx, v)
}

// timings reads the measured times of activities.
func (v *Visible) timings(ctx context.Context) ([]schema.TimingRow, error) {
	manifests, err := v.withoutHead(ctx, schema.Timings, timingsStep, timingsRun)
	if err != nil {
		return nil, err
	}
	return rowsOf[schema.TimingRow](ctx, v.record, shardsOf(schema.Timings, manifests))
}

// count counts the committed work of every step with a head: an interrupted step's times may be lost, but its rows are
// not.
func (f *RunFigures) count(ctx context.Context, v *Visible) error {
	trajectories, err := v.Shards(ctx, schema.Trajectories)
	if err != nil {
		return err
	}
	for _, s := range trajectories {
		f.Trajectories += int64(s.Rows)
	}
	calls, err := v.Shards(ctx, schema.ToolCalls)
	if err != nil {
		return err
	}
	for _, s := range calls {
		f.ToolCalls += int64(s.Rows)
	}
	tokens, err := v.record.sum(ctx, v.heads, schema.StageRollout, schema.StatTokens)
	if err != nil {
		return err
	}
	excluded, err := v.record.sum(ctx, v.heads, schema.StageResample, schema.StatExcluded)
	f.Tokens, f.Excluded = int64(tokens), int64(excluded)
	return err
}

// sum adds up a statistic over the manifests of one stage of steps.
func (r *Record) sum(ctx context.Context, steps []schema.Head, stage, stat string) (float64, error) {
	var refs []schema.Ref
	for _, h := range steps {
		refs = append(refs, h.Stages[stage]...)
	}
	manifests, err := r.manifests(ctx, refs)
	total := 0.0
	for _, m := range manifests {
		total += m.Stats[stat]
	}
	return total, err
}

// Measure computes the figures from timing rows, in any order. Rows of single tool calls are part of their activities
// and are not counted.
func Measure(rows []schema.TimingRow) RunFigures {
	out := RunFigures{StageSeconds: map[string]float64{}}
	byStage := map[string][]interval{}
	var all, training []interval
	window := interval{-1, -1}
	for _, row := range rows {
		if row.Kind != kindActivity {
			continue
		}
		span := interval{row.StartMicros, row.End()}
		byStage[row.Stage] = append(byStage[row.Stage], span)
		all = append(all, span)
		if row.Stage != schema.StageEvaluate {
			training = append(training, span)
		}
		if row.Stage == schema.StagePrompts && (window.from < 0 || span.from < window.from) {
			window.from = span.from
		}
		if row.Stage == schema.StagePublish {
			window.to = max(window.to, span.to)
		}
	}
	out.WarmStartSeconds = covered(byStage[schema.StageWarmStart])
	out.EvalSeconds = covered(byStage[schema.StageEvaluate])
	if window.from < 0 || window.to <= window.from {
		return out
	}
	length := covered([]interval{window})
	// An evaluation may run alongside a step: only the time in which nothing else ran is its own.
	out.RLSeconds = length - covered(within(all, window)) + covered(within(training, window))
	for stage, spans := range byStage {
		if inside := covered(within(spans, window)); inside > 0 && stage != schema.StageEvaluate {
			out.StageSeconds[stage] = inside
		}
	}
	for _, gap := range gaps(all, window) {
		if gap > longestGap.Seconds() {
			out.StandstillSeconds += gap
		}
	}
	out.RLSeconds -= out.StandstillSeconds
	if out.RLSeconds > 0 {
		out.OrchestrationShare = (length - out.StandstillSeconds - covered(within(all, window))) / out.RLSeconds
	}
	return out
}
