package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/recipes"
)

// TestMethods: every method's recipe can run, samples as many trajectories for as many prompts and steps, and has the
// same world, clone, reward and optimiser.
func TestMethods(t *testing.T) {
	var first *recipes.Recipe
	for _, m := range methods {
		resolved, err := recipes.Resolve(m.recipe, "", m.set, nil, nil)
		require.NoError(t, err, m.name)
		r := &resolved.Recipe
		require.Empty(t, r.Planned())
		require.Equal(t, m.name != baseline, r.Rollout.Tree != nil)
		if first == nil {
			first = r
			continue
		}
		require.Equal(t, first.Steps, r.Steps)
		require.Equal(t, first.Environment, r.Environment)
		require.Equal(t, first.WarmStart, r.WarmStart)
		require.Equal(t, first.Reward, r.Reward)
		require.Equal(t, first.Optimizer, r.Optimizer)
		rollout := r.Rollout
		rollout.Tree = nil
		require.Equal(t, first.Rollout, rollout)
	}
}

// TestCurves: by hand, at 150 calls the line from (100, 0.2) to (200, 0.6) is at 0.4.
func TestCurves(t *testing.T) {
	curve := []point{{0, 0, 0.1}, {4, 100, 0.2}, {8, 200, 0.6}}
	for calls, want := range map[float64]float64{0: 0.1, 50: 0.15, 100: 0.2, 150: 0.4, 200: 0.6, 300: 0.6} {
		require.InDelta(t, want, at(curve, calls), 1e-12, calls)
	}
	of := func(method string, seed int, calls, success float64) trial {
		return trial{Method: method, Seed: seed, Curve: []point{{0, 0, 0}, {4, calls, success}}, Generated: 1,
			InLeaves: 2}
	}
	all := append(atCommonCalls([]trial{of("grpo", 1, 200, 0.4), of("aepo", 1, 100, 0.3)}),
		atCommonCalls([]trial{of("grpo", 2, 200, 0.4), of("aepo", 2, 100, 0.5)})...)
	require.InDelta(t, 0.2, all[0].AtCommon, 1e-12)
	got := differences(all)
	require.Len(t, got, 1)
	require.InDelta(t, 0, got[0].Steps.Mean, 1e-9)  // −10 and +10
	require.InDelta(t, 20, got[0].Calls.Mean, 1e-9) // +10 and +30
	require.InDelta(t, 20-12.706*10, *got[0].Calls.Low, 1e-6)
	require.Contains(t, table(all), "50%")
	require.Nil(t, differences(all[:2])[0].Steps.Low, "one seed has no interval")
}

// script stands for the program.
const script = `#!/bin/sh
case "$*" in
*--dry-run*) echo '{"digest": "0123456789abcdef"}' ;;
"runs --json") echo '{"runs": [{"run": "trees-aepo-s2-01234567"}]}' ;;
sql*evaluations*) echo '{"rows": [[0, 0, 0.25], [4, 90, 0.5], [4, 90, 0.75]]}' ;;
sql*) echo '{"rows": [[30, 40]]}' ;;
"resume trees-aepo-s2-01234567 --json") echo '{"run_id": "x", "rl_seconds": 7}' ;;
*) echo "unexpected: $*" >&2; exit 1 ;;
esac
`

// TestDoneTrialsAreNotRepeated: a run of the record is resumed, which prints the result of one that is done.
func TestDoneTrialsAreNotRepeated(t *testing.T) {
	program := filepath.Join(t.TempDir(), "ropewalk")
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	got, err := bencher{program: bench.Program{Path: program}}.try(context.Background(), methods[2], 2)
	require.NoError(t, err)
	require.Equal(t, trial{Method: "aepo", Seed: 2, Run: "trees-aepo-s2-01234567", RLSeconds: 7,
		Curve: []point{{0, 0, 0.25}, {4, 90, 0.75}}, Generated: 30, InLeaves: 40}, got)
}
