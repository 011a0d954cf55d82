package e2e

import (
	"encoding/json"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// imitating has the tiny recipe learn from its replay buffer again within its four steps.
func imitating(run string) []string {
	return recipe(run, "--set", "replay={size: 12, baselines: 24, cov_low: -1, cov_high: 1, cov_ratio: 0.1}", "--set",
		"schedule={gamma_horizon: 8}")
}

// A run that learns from its buffer ends in the same policy whether or not its worker is killed and the
// run interrupted on the way.
func TestReplayBufferSurvives(t *testing.T) {
	t.Parallel()
	h, _ := withBase(t)
	h.ensureUp(t)
	t.Cleanup(func() { h.ensureDown(t) })
	want := h.run(t, imitating("imitating")...).ok(t).report(t)
	h.run(t, "verify", "imitating").ok(t)
	consumed := 0
	for step := 1; step <= steps; step++ {
		m := h.record().manifest(t, schema.At("imitating", step, schema.StageBuffer).ManifestKey())
		consumed += len(m.ShardsOf(schema.ReplayBatch))
	}
	require.Positive(t, consumed, "the buffer fills and is learnt from")
	require.Less(t, consumed, steps)

	t.Run("a killed worker", func(t *testing.T) {
		run := h.start(t, imitating("imitating-killed")...)
		require.NoError(t, syscall.Kill(h.freezeInMidStep(t, "imitating-killed"), syscall.SIGKILL))
		h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	})
	t.Run("check", func(t *testing.T) {
		var report struct {
			Differs int
			Shards  []struct{ Stage string }
		}
		r := h.run(t, "replay", "--check", "imitating", "--json").ok(t)
		require.NoError(t, json.Unmarshal([]byte(r.out), &report), r.out)
		require.Zero(t, report.Differs)
		made := 0
		for _, s := range report.Shards {
			if s.Stage == schema.StageBuffer {
				made++
			}
		}
		require.Equal(t, 2*steps+consumed, made)
	})
	t.Run("in SQL", func(t *testing.T) {
		r := h.run(t, "sql", "--run", "imitating", "--json",
			"select count(distinct step) n from updates where source = 'replay' and rows > 0").ok(t)
		var got struct{ Rows [][]float64 }
		require.NoError(t, json.Unmarshal([]byte(r.out), &got), r.out)
		require.LessOrEqual(t, got.Rows[0][0], float64(consumed))
		require.Positive(t, got.Rows[0][0])
	})
	t.Run("an interrupted run", func(t *testing.T) {
		h.ensureDown(t)
		const name = "imitating-interrupted"
		run := h.start(t, imitating(name)...)
		eventually(t, func() bool { return h.record().heads(name) > 0 }, "the first step of %s", name)
		run.signal(t, syscall.SIGINT)
		require.Equal(t, 130, run.wait(t).code)
		require.Less(t, h.record().heads(name), steps, "interrupted too late to prove anything")
		r := h.run(t, "resume", name, "--json").ok(t)
		h.ensureUp(t)
		h.undisturbed(t, want, r.report(t))
	})
}
