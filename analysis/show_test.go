package analysis_test

import (
	"bytes"
	"context"
	"flag"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

var update = flag.Bool("update", false, "rewrite the golden files")

func TestShowStep(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1})
	for _, c := range []struct {
		name   string
		choice analysis.Choice
	}{
		{"step", analysis.Choice{N: 5, Group: analysis.AnyGroup}},
		{"group", analysis.Choice{N: 2, Group: 1}},
	} {
		view, err := analysis.New(objects).Step(context.Background(), "r", 2, c.choice)
		require.NoError(t, err)
		var text bytes.Buffer
		require.NoError(t, view.Write(&text))
		golden.Check(t, c.name+".txt", text.String(), *update)
	}
}

func TestShowTellsTheDivergenceFromAReference(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1, Outputs: true})
	view, err := analysis.New(objects).Step(context.Background(), "r", 1,
		analysis.Choice{N: 1, Group: analysis.AnyGroup})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, view.Write(&text))
	require.Contains(t, text.String(), "divergence from the reference policy: 0.03000 nats per token\n")
}

func TestShowTellsHowTheCriticDoes(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Critic: true})
	view, err := analysis.New(objects).Step(context.Background(), "r", 2,
		analysis.Choice{N: 1, Group: analysis.AnyGroup})
	require.NoError(t, err)
	var text bytes.Buffer
	require.NoError(t, view.Write(&text))
	require.Contains(t, text.String(), "critic: loss 0.1250, clipped 12.5%, value 0.250 of return 0.500, explains "+
		"50.0% of the returns' variance\n")
	overview, err := analysis.New(objects).Overview(context.Background(), "r")
	require.NoError(t, err)
	text.Reset()
	require.NoError(t, overview.Write(&text))
	require.Regexp(t, `\n +1 .* 0\.38±1\.55\n +critic: loss 0\.2500, clipped 12\.5%, `+
		`value 0\.250 of return 0\.500, explains 0\.0%`, text.String())
}

func TestShowChoosesADiverseFew(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 1, Seed: 1})
	ids := func(n, group int) []string {
		view, err := analysis.New(objects).Step(context.Background(), "r", 1, analysis.Choice{N: n, Group: group})
		require.NoError(t, err)
		out := []string{}
		for _, e := range view.Episodes {
			require.Equal(t, e.Reward.TrajectoryID, e.Trajectory.TrajectoryID)
			require.Equal(t, e.Reward.GroupID, e.Prompt.GroupID)
			require.Len(t, e.Turns, int(e.Trajectory.Turns))
			require.Len(t, e.Calls, int(e.Trajectory.ToolCalls))
			require.Equal(t, e.Selection.Kept, e.Advantage != nil)
			out = append(out, e.Reward.TrajectoryID)
		}
		return out
	}
	// kept positive, kept negative (of the other group), surplus, zero variance, then the next of each
	require.Equal(t, []string{"00001/0000/000", "00001/0001/001", "00001/0000/003", "00001/0002/000", "00001/0001/000"},
		ids(5, analysis.AnyGroup))
	require.Equal(t, []string{"00001/0001/000"}, ids(1, 1))
	require.Len(t, ids(99, analysis.AnyGroup), recordtest.Groups*recordtest.Samples)
}

func TestShowNamesWhatIsNotThere(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Open: true})
	ctx, record := context.Background(), analysis.New(objects)
	_, err := record.Step(ctx, "r", 2, analysis.Choice{N: 1, Group: analysis.AnyGroup})
	require.ErrorIs(t, err, analysis.ErrNoStep, "in progress")
	_, err = record.Step(ctx, "r", 1, analysis.Choice{N: 1, Group: 7})
	require.ErrorIs(t, err, analysis.ErrNoGroup)
	_, err = record.Step(ctx, "x", 1, analysis.Choice{N: 1, Group: analysis.AnyGroup})
	require.ErrorIs(t, err, analysis.ErrNoRun)
	_, err = record.Overview(ctx, "x")
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

func TestOverview(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 2, Seed: 1, Created: "2026-01-02T03:04:05Z"})
	overview, err := analysis.New(objects).Overview(context.Background(), "r")
	require.NoError(t, err)
	require.Equal(t, analysis.StepSummary{
		Step: 1, Trajectories: 12, Reward: overview.Steps[0].Reward, Success: overview.Steps[0].Success, KeptGroups: 2,
		DroppedGroups: 1, Kept: 6,
		Entropy: new(0.6), KL: overview.Steps[0].KL, ClipFraction: 0.1, GradNorm: new(2.0), Updates: 2,
		Advantages: overview.Steps[0].Advantages,
	}, overview.Steps[0])
	require.InDelta(t, 0.5, overview.Steps[0].Reward, 1e-12)
	require.InDelta(t, 8.0/12, overview.Steps[1].Success, 1e-12)
	require.InDelta(t, 0.015, overview.Steps[0].KL, 1e-12)
	require.InDelta(t, 0.375, overview.Steps[0].Advantages.Mean, 1e-12)
	var text bytes.Buffer
	require.NoError(t, overview.Write(&text))
	golden.Check(t, "overview.txt", text.String(), *update)
	for _, line := range strings.Split(text.String(), "\n") {
		require.LessOrEqual(t, utf8.RuneCountInString(line), 80, line)
	}
}

func TestRunsNewestFirst(t *testing.T) {
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "old", Steps: 1, Seed: 1, Created: "2026-01-01T00:00:00Z"})
	recordtest.Train(t, objects, recordtest.Options{Run: "new", Steps: 2, Planned: 3, Seed: 2,
		Created: "2026-01-02T00:00:00Z", Open: true})
	runs, err := analysis.New(objects).Runs(context.Background())
	require.NoError(t, err)
	quarter, most := 0.25, 0.75
	want := []analysis.Run{
		{CatalogueEntry: schema.CatalogueEntry{Run: "new", Recipe: "fixture", Seed: 2, Steps: 3,
			Created: "2026-01-02T00:00:00Z"}, Planned: 3, StepsDone: 1, Status: string(status.Open), Before: &quarter},
		{CatalogueEntry: schema.CatalogueEntry{Run: "old", Recipe: "fixture", Seed: 1, Steps: 1,
			Created: "2026-01-01T00:00:00Z"}, Planned: 1, StepsDone: 1, Status: string(status.Done), Before: &quarter,
			After: &most},
	}
	if d := cmp.Diff(want, runs); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	runs, err = analysis.New(mem.New()).Runs(context.Background())
	require.NoError(t, err)
	require.Empty(t, runs)
}
