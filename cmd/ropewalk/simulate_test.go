package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestSimulateRollout(t *testing.T) {
	picture := filepath.Join(t.TempDir(), "engines.svg")
	code, out, messages := command(t, "simulate", "rollout", "math-few", "-o", picture)
	require.Equal(t, exitDone, code, messages)
	require.Contains(t, out, "math-few: 512 rollouts on 64 engines\nbound: ")
	require.Regexp(t, `(?m)^simple bound: [\d.]+ s .*; the scheduler takes 1\.\d\d times as long$`, out)
	require.Regexp(t, `(?m)^scheduler +[\d.]+ +1\.\d\d +[\d.]+% +0 `, out)
	require.Regexp(t, `(?m)^static, asynchronous +[\d.]+ `, out)
	svg, err := os.ReadFile(picture)
	require.NoError(t, err)
	require.Contains(t, string(svg), "<svg ")

	code, out, messages = command(t, "simulate", "rollout", "math-few", "--reserve", "expected", "--need", "4",
		"--json")
	require.Equal(t, exitDone, code, messages)
	var c struct {
		Rollouts    int
		OverSampled bool `json:"over_sampled"`
		Scheduler   struct{ Ended, Stopped int }
	}
	require.NoError(t, json.Unmarshal([]byte(out), &c))
	require.True(t, c.OverSampled)
	require.Equal(t, 512, c.Rollouts)
	require.Equal(t, 512, c.Scheduler.Ended+c.Scheduler.Stopped)
	require.Positive(t, c.Scheduler.Stopped)
}

func TestSimulateRolloutRefuses(t *testing.T) {
	file := filepath.Join(t.TempDir(), "w.yaml")
	require.NoError(t, os.WriteFile(file, []byte("engines: [{count: 1}]"), 0o644))
	empty := filepath.Join(t.TempDir(), "empty.yaml")
	require.NoError(t, os.WriteFile(empty, nil, 0o644))
	for _, tt := range []struct {
		want string
		args []string
	}{
		{"missing argument FILE|PRESET", nil},
		{"no workload file rstar3; did you mean rstar2", []string{"rstar3"}},
		{"w.yaml: engines[0].kv_tokens: must be ≥ 1, got 0", []string{file}},
		{"empty.yaml: the file is empty", []string{empty}},
		{`--reserve: must be stretch, worst or expected, got "most"`, []string{"rstar2", "--reserve", "most"}},
		{"--step: is a step of a run's record; add --lengths", []string{"rstar2", "--step", "2"}},
		{"--need: must be ≥ 0, got -1", []string{"rstar2", "--need", "-1"}},
	} {
		code, _, messages := command(t, append([]string{"simulate", "rollout"}, tt.args...)...)
		require.Equal(t, exitBadInput, code, tt.want)
		require.Contains(t, messages, tt.want)
	}
	code, _, messages := command(t, "simulate", "training")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "unknown command")
}
