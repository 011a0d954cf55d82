package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
)

// forwarding are the settings of a run that recomputes old log-probabilities, holds on to a reference
// by a KL loss, and takes two epochs of two mini-batches.
var forwarding = []string{
	"--set", "loss.old_log_probs=recompute", "--set", "loss.kl={estimator: k3, coefficient: 0.05}",
	"--set", "optimizer.minibatches=2", "--set", "optimizer.epochs=2",
}

// imitating has the tiny recipe learn from its replay buffer again within its four steps.
var imitating = []string{
	"--set", "replay={size: 12, baselines: 24, cov_low: -1, cov_high: 1, cov_ratio: 0.1}", "--set",
	"schedule={gamma_horizon: 8}",
}

// A run with a forward pass and a replay buffer ends in the same policy whether or not its worker is killed on the way.
func TestForwardPassesAndABuffer(t *testing.T) {
	longform.Need(t, killsVariable, "test-kills")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	settings := slices.Concat(forwarding, imitating)
	want := h.train(t, "forward", settings...)
	consumed := 0
	for step := 1; step <= steps; step++ {
		m := h.record().manifest(t, schema.At("forward", step, schema.StageBuffer).ManifestKey())
		consumed += len(m.ShardsOf(schema.ReplayBatch))
	}
	require.Positive(t, consumed, "the buffer fills and is learnt from")
	require.Less(t, consumed, steps)
	t.Run("is whole", func(t *testing.T) {
		h.run(t, "verify", "forward").ok(t)
		var report struct {
			Differs int
			Shards  []struct{ Stage string }
		}
		r := h.run(t, "replay", "--check", "forward", "--json").ok(t)
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
	t.Run("has updates by the buffer", func(t *testing.T) {
		n := h.count(t, "forward",
			"select count(distinct step) from updates where source = 'replay' and rows > 0")
		require.Positive(t, n)
		require.LessOrEqual(t, n, consumed)
	})
	t.Run("has outputs of every kept trajectory", func(t *testing.T) {
		got := h.ask(t, "forward",
			"select s.step, count(*) n, count(o.old_logprobs), count(o.reference_logprobs), count(o.entropies), "+
				"count(distinct o.policy_version) from selection s left join token_outputs o using (run, step, "+
				"trajectory_id) where s.kept group by all order by all")
		require.Len(t, got.Rows, steps)
		for i, row := range got.Rows {
			require.Positive(t, row[1])
			require.Equal(t, []any{float64(i + 1), row[1], row[1], row[1], 0.0, 1.0}, row)
		}
		updates := h.ask(t, "forward",
			"select step, count(*), count(reference_kl), max(minibatch) from updates where source <> 'replay' "+
				"group by all order by all")
		require.Len(t, updates.Rows, steps)
		for i, row := range updates.Rows {
			require.Equal(t, []any{float64(i + 1), 4.0, 4.0, 3.0}, row)
		}
	})
	t.Run("loses nothing when its worker is killed", func(t *testing.T) {
		run := h.start(t, recipe("forward-killed", settings...)...)
		require.NoError(t, syscall.Kill(h.freezeInForward(t, "forward-killed"), syscall.SIGKILL))
		h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	})
	t.Run("is not replayed without the engine", func(t *testing.T) {
		r := h.run(t, "replay", "forward", "--step", "2", "--from", "logprobs")
		require.Equal(t, 2, r.code)
		require.Contains(t, r.err, "logprobs cannot be replayed: it needs the engine")
		r = h.run(t, "replay", "forward", "--step", "2", "--from", "resample", "--set", "resample.roc=null")
		require.NotZero(t, r.code)
		require.Contains(t, r.err, "was not kept when the step's forward pass ran")
		h.run(t, "verify", "forward").ok(t)
	})
}

// freezeInForward stops the worker's process once a shard's token outputs are committed and their
// step has no head yet, and returns its process id.
func (h *home) freezeInForward(t *testing.T, run string) int {
	t.Helper()
	return h.freezeWhile(t, func() bool { return h.record().halfForward(run) },
		"a step of "+run+" to have token outputs")
}

// halfForward reports that a step without a head has committed token outputs.
func (r record) halfForward(run string) bool {
	for step := 1; step <= steps; step++ {
		begun := slices.ContainsFunc(r.keys(fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step)),
			func(key string) bool {
				p, err := schema.ParseManifestKey(key)
				return err == nil && p.Stage == schema.StageLogprobs
			})
		if begun && !r.has(schema.HeadKey(run, fmt.Sprint(step))) {
			return true
		}
	}
	return false
}
