package compare_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

var update = flag.Bool("update", false, "write the golden file")

const created = "2026-01-02T03:04:05Z"

// trained commits runs of the given options into one store.
func trained(t *testing.T, all ...recordtest.Options) store.Store {
	t.Helper()
	objects := mem.New()
	for _, o := range all {
		o.Created = created
		recordtest.Train(t, objects, o)
	}
	return objects
}

func read(t *testing.T, objects store.Store, names ...string) *compare.Comparison {
	t.Helper()
	c, err := compare.Read(context.Background(), analysis.New(objects), names)
	require.NoError(t, err)
	return c
}

func textOf(t *testing.T, c *compare.Comparison) string {
	t.Helper()
	var out bytes.Buffer
	require.NoError(t, c.Write(&out))
	return out.String()
}

func TestEqualRuns(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 2, Seed: 1},
		recordtest.Options{Run: "b", Steps: 2, Seed: 1})
	c := read(t, objects, "a", "b")
	require.Empty(t, c.Recipe.Differ)
	require.Equal(t, []compare.AgainstBase{{Run: "b", Equal: 2}}, c.Divergences)
	require.Contains(t, textOf(t, c), "A and B are equal in all that both recorded: 2 steps")
	for _, e := range c.Evaluations {
		require.Zero(t, e.Against[0].Mean)
	}
	for _, r := range c.Made {
		require.False(t, r.Differ, r.Name)
	}
}

func TestRecipesAreComparedFieldByField(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 1, Seed: 1},
		recordtest.Options{Run: "b", Steps: 1, Planned: 4, Seed: 9})
	c := read(t, objects, "a", "b")
	require.Len(t, c.Recipe.Differ, 2)
	seed, steps := c.Recipe.Differ[0], c.Recipe.Differ[1]
	require.Equal(t, []string{"seed", "1"}, []string{seed.Path, seed.Default})
	require.Equal(t, []string{"1", "9"}, seed.Values)
	require.Equal(t, "steps", steps.Path)
	require.Equal(t, []string{"1", "4"}, steps.Values)
	require.Contains(t, textOf(t, c), fmt.Sprintf("recipe       2 of %d fields differ\n", c.Recipe.Fields))
}

// Each case changes one thing, and the first row that it changes is named.
func TestWhereRecordsFirstDiffer(t *testing.T) {
	same := recordtest.Options{Run: "a", Steps: 3, Seed: 1}
	for name, c := range map[string]struct {
		change func(o *recordtest.Options)
		want   compare.Divergence
		equal  int
		words  string
	}{
		"another first policy": {
			func(o *recordtest.Options) { o.Seed = 2 },
			compare.Divergence{Stage: "warm_start", Table: "checkpoint"}, 0,
			"A and B first differ before step 1, stage warm_start, table checkpoint",
		},
		"a turn that the engine broke": {
			func(o *recordtest.Options) { o.Broken = map[string]string{schema.TrajectoryID(2, 1, 3): "engine lost"} },
			compare.Divergence{Step: 2, Stage: "rollout", Turn: new(0), Table: "turns", Row: 7, Key: [2]string{
				"group_id 00002/0001, trajectory_id 00002/0001/003, turn 0",
				"group_id 00002/0001, trajectory_id 00002/0001/003, turn 0",
			}}, 1,
			"A and B first differ in step 2, stage rollout, turn 0, table turns, row 7",
		},
		"a stage that only one run has": {
			func(o *recordtest.Options) { o.Gradings = true },
			compare.Divergence{Step: 1, Stage: "grade", OnlyIn: new(1)}, 0,
			"A and B first differ in step 1, stage grade, which only B has",
		},
		"rows that only one run has": {
			func(o *recordtest.Options) { o.Skipped = 3 },
			compare.Divergence{Step: 3, Stage: "rollout", Turn: new(0), Table: "turns", Row: 8, Key: [2]string{
				"group_id 00003/0002, trajectory_id 00003/0002/000, turn 0", "",
			}}, 2,
			"A and B first differ in step 3, stage rollout, turn 0, table turns, row 8",
		},
	} {
		t.Run(name, func(t *testing.T) {
			other := same
			other.Run = "b"
			c.change(&other)
			got := read(t, trained(t, same, other), "a", "b")
			require.Len(t, got.Divergences, 1)
			d := got.Divergences[0]
			require.NotNil(t, d.Divergence)
			if d.Divergence.Key[0] == d.Divergence.Key[1] && d.Divergence.OnlyIn == nil {
				require.NotEmpty(t, d.Divergence.Columns, "which columns differ")
			}
			d.Divergence.Columns = nil
			require.Equal(t, c.want, *d.Divergence)
			require.Equal(t, c.equal, d.Equal)
			require.Contains(t, textOf(t, got), c.words)
		})
	}
}

func TestColumnsOfADifferentRow(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 1, Seed: 1},
		recordtest.Options{Run: "b", Steps: 1, Seed: 1,
			Broken: map[string]string{schema.TrajectoryID(1, 0, 0): "engine lost"}})
	columns := map[string]compare.Column{}
	for _, c := range read(t, objects, "a", "b").Divergences[0].Divergence.Columns {
		columns[c.Name] = c
	}
	require.Equal(t, [2]string{"null", `"engine lost"`}, columns["excluded"].Values)
	require.Equal(t, `""`, columns["response"].Values[1])
	require.NotNil(t, columns["token_ids"].At, "the first element of a list that differs")
	require.Contains(t, columns["token_ids"].Values[1], "(ends after ")
	require.NotContains(t, columns, "trajectory_id")
}

func TestFiguresOfSteps(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 3, Seed: 1},
		recordtest.Options{Run: "b", Steps: 2, Seed: 1})
	c := read(t, objects, "a", "b")
	require.Len(t, c.Steps, 3)
	overview, err := analysis.New(objects).Overview(context.Background(), "a")
	require.NoError(t, err)
	for i, s := range overview.Steps {
		for name, want := range map[string]float64{
			"success": s.Success, "reward": s.Reward, "kept": float64(s.Kept), "entropy": *s.Entropy, "kl": s.KL,
		} {
			require.InDelta(t, want, *c.Steps[i].Figures[name][0], 1e-12, name)
		}
		require.Positive(t, *c.Steps[i].Figures["response_tokens"][0])
		require.InDelta(t, 0.5, *c.Steps[i].Figures["tool_calls"][0], 1e-12, "2 of 4 samples call a tool once")
	}
	require.Nil(t, c.Steps[2].Figures["success"][1], "run b has no step 3")
	for _, f := range analysis.StepFigures {
		require.NotEmpty(t, f.Doc, f.Name)
		require.Len(t, c.Steps[0].Figures[f.Name], 2, f.Name)
	}
}

// The fixture's evaluations solve 1 of 4 problems at the start and 3 at the end.
func TestEvaluationsArePairedByProblem(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 1, Seed: 1},
		recordtest.Options{Run: "b", Steps: 2, Seed: 1},
		recordtest.Options{Run: "c", Steps: 1, Planned: 2, Seed: 1})
	c := read(t, objects, "a", "b", "c")
	var names []string
	for _, e := range c.Evaluations {
		names = append(names, e.Name)
	}
	require.Equal(t, []string{"warm start", "last"}, names)
	last := c.Evaluations[1]
	require.Equal(t, []*int{new(1), new(2), new(0)}, last.Steps)
	require.Zero(t, last.Against[0].Mean, "3 of 4 in both")
	d := last.Against[1]
	require.Equal(t, 4, d.Problems)
	require.InDelta(t, -0.5, d.Mean, 1e-12)
	require.Less(t, d.Low, -0.5)
	require.Greater(t, d.High, -0.5)
	require.InDelta(t, -0.5, d.ByLevel["2"].Mean, 1e-12)
	require.Equal(t, 2, d.ByLevel["2"].Problems)
}

func TestTextAndJSON(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 2, Seed: 1},
		recordtest.Options{Run: "b", Steps: 3, Seed: 1,
			Broken: map[string]string{schema.TrajectoryID(2, 1, 3): "engine lost"}})
	c := read(t, objects, "a", "b")
	golden.Check(t, "two.txt", textOf(t, c), *update)
	out, err := json.Marshal(c)
	require.NoError(t, err)
	require.Contains(t, string(out), `"first_difference":{"step":2,"stage":"rollout","turn":0,"table":"turns","row":7`)
	require.NotContains(t, string(out), `"differences":null`)
}

func TestWhichRunsCanBeCompared(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 1, Seed: 1})
	for _, c := range []struct {
		names []string
		want  string
	}{
		{[]string{"a"}, "name two runs or more"},
		{[]string{"a", "a"}, "run a is named twice"},
		{[]string{"a", "b", "c", "d", "e", "f", "g", "h", "i"}, "at most 8 runs"},
	} {
		_, err := compare.Read(context.Background(), analysis.New(objects), c.names)
		require.ErrorContains(t, err, c.want)
		var bad badinput.Error
		require.ErrorAs(t, err, &bad)
	}
	_, err := compare.Read(context.Background(), analysis.New(objects), []string{"a", "none"})
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

// An import has neither a policy nor evaluations.
func TestAnImportIsCompared(t *testing.T) {
	objects := trained(t, recordtest.Options{Run: "a", Steps: 1, Seed: 1})
	recordtest.Import(t, objects, "import")
	c := read(t, objects, "a", "import")
	require.Empty(t, c.Evaluations)
	require.Nil(t, c.Steps[0].Figures["entropy"][1])
	require.Equal(t, "warm_start", c.Divergences[0].Divergence.Stage)
	require.Contains(t, textOf(t, c), "no two runs were evaluated on the same problems")
}
