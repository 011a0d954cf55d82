package analysis_test

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// ran is an activity from one second to another.
func ran(stage string, from, to float64) schema.TimingRow {
	return schema.TimingRow{Stage: stage, Kind: "activity", StartMicros: int64(from * 1e6),
		EndMicros: new(int64(to * 1e6))}
}

func TestMeasure(t *testing.T) {
	call := ran(schema.StageSandbox, 0, 100)
	call.Kind = "tool_call"
	for _, c := range []struct {
		name string
		rows []schema.TimingRow
		want analysis.RunFigures
	}{
		{name: "nothing", want: analysis.RunFigures{StageSeconds: map[string]float64{}}},
		{
			name: "no publication yet: no window",
			rows: []schema.TimingRow{ran(schema.StageWarmStart, 0, 8), ran(schema.StageEvaluate, 8, 10),
				ran(schema.StagePrompts, 10, 11)},
			want: analysis.RunFigures{WarmStartSeconds: 8, EvalSeconds: 2, StageSeconds: map[string]float64{}},
		},
		{
			// window 10 … 20; executing 10–12, 13–16, 18–20: in 3 of 10 seconds nothing runs
			name: "shards overlap, gaps are orchestration",
			rows: []schema.TimingRow{
				ran(schema.StagePublish, 18, 20), ran(schema.StageRollout, 13, 15), ran(schema.StageRollout, 14, 16),
				ran(schema.StagePrompts, 10, 12), ran(schema.StageSandbox, 15, 16), ran(schema.StageAssemble, 15.5, 16),
				call,
			},
			want: analysis.RunFigures{
				RLSeconds: 10, OrchestrationShare: 0.3,
				StageSeconds: map[string]float64{"prompts": 2, "rollout": 3, "sandbox": 1, "assemble": 0.5,
					"publish": 2},
			},
		},
		{
			// window 10 … 50; nothing runs in 12–13, 14–24 and 30–45, of which the last is a standstill
			name: "a gap of more than ten seconds is a standstill",
			rows: []schema.TimingRow{
				ran(schema.StagePrompts, 10, 12), ran(schema.StageRollout, 13, 14), ran(schema.StageUpdate, 24, 30),
				ran(schema.StagePublish, 45, 50),
			},
			want: analysis.RunFigures{
				RLSeconds: 25, StandstillSeconds: 15, OrchestrationShare: 11.0 / 25,
				StageSeconds: map[string]float64{"prompts": 2, "rollout": 1, "update": 6, "publish": 5},
			},
		},
		{
			// window 10 … 30, evaluations 3–8 before it, 14–18 within, and 29–35 across its end and alongside a
			// publication: 20 − 4
			name: "an evaluation that nothing else ran alongside is not reinforcement learning",
			rows: []schema.TimingRow{
				ran(schema.StageWarmStart, 0, 3), ran(schema.StageEvaluate, 3, 8), ran(schema.StagePrompts, 10, 14),
				ran(schema.StageEvaluate, 14, 18),
				ran(schema.StageUpdate, 18, 27), ran(schema.StagePublish, 27, 30), ran(schema.StageEvaluate, 29, 35),
			},
			want: analysis.RunFigures{
				RLSeconds: 16, WarmStartSeconds: 3, EvalSeconds: 15, OrchestrationShare: 0,
				StageSeconds: map[string]float64{"prompts": 4, "update": 9, "publish": 3},
			},
		},
		{
			name: "a warm start made again inside the window is cut to it",
			rows: []schema.TimingRow{ran(schema.StageWarmStart, 8, 12), ran(schema.StagePrompts, 10, 11),
				ran(schema.StagePublish, 19, 20)},
			want: analysis.RunFigures{
				RLSeconds: 10, WarmStartSeconds: 4, OrchestrationShare: 0.7,
				StageSeconds: map[string]float64{"warm_start": 2, "prompts": 1, "publish": 1},
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := analysis.Measure(c.rows)
			if d := cmp.Diff(c.want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
				t.Errorf("-want +got:\n%s", d)
			}
		})
	}
}

// Each of a step's 16 activities takes a second after a quarter of nothing, and so do the two before.
func TestFiguresOfARecord(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	got, err := analysis.New(objects).Figures(context.Background(), "r")
	require.NoError(t, err)
	const activities, steps = 15, 2
	window := float64(activities*steps)*1.25 - 0.25
	want := analysis.RunFigures{
		Trajectories: steps * recordtest.Groups * recordtest.Samples,
		ToolCalls:    steps * recordtest.Groups * recordtest.Calls,
		Tokens:       steps * recordtest.Shards * 40, RLSeconds: window, WarmStartSeconds: 1, EvalSeconds: 2,
		OrchestrationShare: (window - activities*steps) / window,
		StageSeconds: map[string]float64{
			"prompts": 2, "rollout": 8, "sandbox": 4, "assemble": 4, "reward": 4, "resample": 2, "advantage": 2,
			"update": 2, "publish": 2,
		},
	}
	if d := cmp.Diff(want, got, cmpopts.EquateApprox(0, 1e-9)); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	_, err = analysis.New(objects).Figures(context.Background(), "another")
	require.ErrorIs(t, err, analysis.ErrNoRun)
}
