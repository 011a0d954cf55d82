package metrics_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/metrics"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

var update = flag.Bool("update", false, "rewrite the Python package's copy")

// run is a run of three steps: see package recordtest for what its rows hold.
func run(t testing.TB) *mem.Store {
	t.Helper()
	objects := mem.New()
	recordtest.Train(t, objects, recordtest.Options{Run: "r", Steps: 3, Seed: 5, Critic: true, Outputs: true,
		Created: "2023-01-02T03:04:05Z", EvaluateAt: map[int]int{2: 2}})
	return objects
}

func compute(t testing.TB, objects *mem.Store) []metrics.Step {
	t.Helper()
	steps, err := metrics.Compute(t.Context(), analysis.New(objects), "r")
	require.NoError(t, err)
	return steps
}

func value(s metrics.Step, name string) float64 {
	for _, v := range s.Values {
		if v.Name == name {
			return v.Value
		}
	}
	return math.NaN()
}

// The Python package computes the same metrics: its metrics.json is a copy of this package's.
func TestPythonHasTheSameMetrics(t *testing.T) {
	ours, err := os.ReadFile("metrics.json")
	require.NoError(t, err)
	copied := filepath.Join("..", "..", "python", "ropewalk", "metrics.json")
	if *update {
		require.NoError(t, os.WriteFile(copied, ours, 0o644))
	}
	theirs, err := os.ReadFile(copied)
	require.NoError(t, err)
	require.Equal(t, string(ours), string(theirs), "go test ./analysis/metrics -update")
}

func TestDeclarations(t *testing.T) {
	seen := map[string]bool{}
	for _, m := range metrics.List() {
		require.Regexp(t, `^(train|selection|update|critic|eval|time|device)/[a-z_]+$`, m.Name)
		require.False(t, seen[m.Name], m.Name)
		require.NotEmpty(t, m.Doc, m.Name)
		seen[m.Name] = true
	}
}

// The values are those that the command show prints and that the fixture's rows give by hand.
func TestValues(t *testing.T) {
	objects := run(t)
	steps := compute(t, objects)
	require.Len(t, steps, 4)
	want, err := analysis.New(objects).Overview(t.Context(), "r")
	require.NoError(t, err)
	for i, s := range want.Steps {
		got := steps[i+1]
		require.Equal(t, s.Step, got.Step)
		for name, v := range map[string]float64{
			"train/reward": s.Reward, "train/success": s.Success, "train/trajectories": float64(s.Trajectories),
			"selection/kept": float64(s.Kept), "selection/kept_groups": float64(s.KeptGroups),
			"update/grad_norm": *s.GradNorm, "update/optimizer_steps": float64(s.Updates),
			"update/advantage_mean": s.Advantages.Mean, "critic/loss": s.Critic.Loss,
		} {
			require.InDelta(t, v, value(got, name), 1e-9, "%s at step %d", name, s.Step)
		}
		require.Zero(t, value(got, "selection/equal_groups"))
		require.InDelta(t, 6, value(got, "train/tool_calls")*12, 1e-9, "2 calls in each of 3 groups")
		require.InDelta(t, 0.5, value(got, "train/tool_error_rate"), 1e-9)
		require.InDelta(t, 4, value(got, "time/rollout_seconds"), 1e-9, "2 turns of 2 shards, a second each")
		require.InDelta(t, 3, value(got, "device/peak_gib"), 1e-9)
	}
	for step, right := range map[int]float64{0: 1, 2: 2, 3: 3} {
		require.InDelta(t, right/4, value(steps[step], "eval/success"), 1e-9)
		require.InDelta(t, 4, value(steps[step], "eval/problems"), 1e-9)
		require.True(t, math.IsNaN(value(steps[step], "eval/greedy_success")), "no data is no point")
	}
	require.True(t, math.IsNaN(value(steps[1], "eval/success")))
	require.True(t, math.IsNaN(value(steps[0], "train/reward")))
	for i := 1; i < len(steps); i++ {
		require.True(t, steps[i].Time.After(steps[i-1].Time))
	}
}

// Groups of equal rewards teach nothing; the fixture marks them in the column reason.
func TestEqualGroups(t *testing.T) {
	objects := mem.New()
	recordtest.Large(t, objects, recordtest.LargeOptions{Run: "r", Steps: 2, Groups: 16, Samples: 4, Shards: 2,
		Problems: 10, Seed: 3})
	view, err := analysis.New(objects).Visible(t.Context(), "r")
	require.NoError(t, err)
	for _, s := range compute(t, objects)[1:] {
		episodes, err := view.Episodes(t.Context(), s.Step)
		require.NoError(t, err)
		equal := map[string]bool{}
		for _, e := range episodes {
			equal[e.Selection.GroupID] = equal[e.Selection.GroupID] || e.Selection.Reason == "zero_variance"
		}
		n := 0
		for _, yes := range equal {
			if yes {
				n++
			}
		}
		require.Positive(t, n)
		require.InDelta(t, float64(n)/16, value(s, "selection/equal_groups"), 1e-9)
	}
}

func TestNoMetrics(t *testing.T) {
	_, err := metrics.Compute(t.Context(), analysis.New(mem.New()), "nosuch")
	require.ErrorIs(t, err, analysis.ErrNoRun)
}

// TensorBoard reads every value, and each at its step and time.
func TestTensorBoardReadsTheEvents(t *testing.T) {
	exe := pythontest.Need(t, "TENSORBOARD", "tensorboard")
	steps := compute(t, run(t))
	folder := t.TempDir()
	var file bytes.Buffer
	require.NoError(t, metrics.WriteEvents(&file, steps))
	require.NoError(t, os.WriteFile(filepath.Join(folder, metrics.EventsFile(steps)), file.Bytes(), 0o644))
	cmd := exec.Command(exe, filepath.Join("testdata", "events.py"))
	var messages bytes.Buffer
	cmd.Stdin, cmd.Stderr = strings.NewReader(folder), &messages
	text, err := cmd.Output()
	require.NoError(t, err, messages.String())
	var got map[string][][3]float64
	require.NoError(t, json.Unmarshal(text, &got), string(text))
	n := 0
	for _, s := range steps {
		for _, v := range s.Values {
			e := got[v.Name][0]
			got[v.Name] = got[v.Name][1:]
			require.EqualValues(t, s.Step, e[0], v.Name)
			require.InDelta(t, float64(s.Time.UnixMicro())/1e6, e[1], 1e-5)
			require.EqualValues(t, float32(v.Value), e[2], v.Name)
			n++
		}
	}
	for name, rest := range got {
		require.Empty(t, rest, name)
	}
	require.Greater(t, n, 100)
}
