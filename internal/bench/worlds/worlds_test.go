package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/recipes"
)

// TestRecipesOfCells: every cell's recipe is valid and can run, and is named after its file.
func TestRecipesOfCells(t *testing.T) {
	require.Len(t, cells(), 10)
	for _, cell := range cells() {
		text, err := files.ReadFile("recipes/" + cell + ".yaml")
		require.NoError(t, err)
		resolved, err := recipes.Resolve("", string(text), nil, nil, nil)
		require.NoError(t, err, cell)
		require.Equal(t, cell, resolved.Recipe.Name)
		require.Empty(t, resolved.Recipe.Planned())
		require.Equal(t, strings.HasSuffix(cell, "-grpo"), resolved.Recipe.Advantage.Name == "grpo" &&
			resolved.Recipe.Loss.Name == "ppo_clip" && cell != "searchqa-prs-vspo", cell)
	}
}

// script stands for the program: it notes its arguments and answers as the program does.
const script = `#!/bin/sh
echo "$@" >>"$CALLS"
case "$*" in
*--dry-run*) echo '{"digest": "0123456789abcdef"}' ;;
"runs --json") echo "{\"runs\": [{\"run\": \"$KNOWN\"}]}" ;;
*) echo '{"run_id": "x", "seed": 2, "warm_start": {"success": 0.25}, "final": {"success": 0.5}, "rl_seconds": 7}' ;;
esac
`

// TestDoneTrialsAreNotRepeated: a run that is in the record is resumed, which prints the result of one that is done.
func TestDoneTrialsAreNotRepeated(t *testing.T) {
	folder := t.TempDir()
	program, calls := filepath.Join(folder, "ropewalk"), filepath.Join(folder, "calls")
	require.NoError(t, os.WriteFile(program, []byte(script), 0o700))
	t.Setenv("CALLS", calls)
	b := bencher{program: bench.Program{Path: program}, folder: folder, changes: []string{"steps=1"}}
	said := func(known string) string {
		t.Setenv("KNOWN", known)
		require.NoError(t, os.RemoveAll(calls))
		got, err := b.try(context.Background(), "shop-grpo", 2)
		require.NoError(t, err)
		require.Equal(t, trial{Cell: "shop-grpo", Run: "x", Seed: 2, Warm: rate{Success: 0.25},
			Final: rate{Success: 0.5}, RLSeconds: 7}, got)
		text, err := os.ReadFile(calls)
		require.NoError(t, err)
		lines := strings.Split(strings.TrimSpace(string(text)), "\n")
		return lines[len(lines)-1]
	}
	first := said("another")
	require.Contains(t, first, "--seed 2 --set steps=1")
	_, rest, _ := strings.Cut(first, "--run-id ")
	run, _, _ := strings.Cut(rest, " ")
	require.Regexp(t, "^worlds-shop-grpo-s2-01234567$", run)
	require.Equal(t, "resume "+run+" --json", said(run))
}

// TestSummaries: by hand, gains of 10, 20 and 30 points have the mean 20 and the deviation 10.
func TestSummaries(t *testing.T) {
	of := func(cell string, seed int, gain float64) trial {
		return trial{Cell: cell, Seed: seed, Final: rate{Success: gain / 100}, RLSeconds: 100 * float64(seed)}
	}
	all := []trial{of("a", 1, 10), of("a", 2, 20), of("a", 3, 30), of("b", 4, 5)}
	got := summaries(all)
	require.Len(t, got, 2)
	require.InDelta(t, 20, got[0].Gain, 1e-9)
	require.InDelta(t, 20-4.303*10/1.7320508, *got[0].Low, 1e-3)
	require.InDelta(t, 20+4.303*10/1.7320508, *got[0].High, 1e-3)
	require.Nil(t, got[1].Low)
	text := table(all)
	require.Contains(t, text, "+20.0")
	require.Contains(t, text, "400 s (limit 300 s: missed)")
}

func TestSeeds(t *testing.T) {
	got, err := seedsOf("1,3")
	require.NoError(t, err)
	require.Equal(t, []int{1, 3}, got)
	_, err = seedsOf("1,x")
	require.ErrorContains(t, err, `seed "x" is not a whole number`)
}
