package e2e

import (
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
)

// sampledInRounds are the arguments of a run of two steps that samples in up to three rounds of two
// shards. Few of its groups of three are informative.
func sampledInRounds(run string) []string {
	return recipe(run, "--set", "steps=2", "--set", "rollout.samples_per_prompt=3", "--set", "resample.vspo=null",
		"--set", "resample.roc=null",
		"--set", "resample.dynamic.tries=3")
}

// reportOf reads what a run of any number of steps reports.
func reportOf(t *testing.T, r result) (out report) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), "%s", r.out)
	return out
}

func TestKilledWorkerInALaterRound(t *testing.T) {
	longform.Need(t, killsVariable, "test-kills")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	whole := h.run(t, sampledInRounds("rounds")...).ok(t)
	want := reportOf(t, whole)
	require.Contains(t, whole.err, " rounds\n", "the table shows them")

	run := h.start(t, sampledInRounds("rounds-killed")...)
	const laterRound = "%sstep=1/rollout/turn=0/shard=2/gen=0.json"
	worker := h.freezeWhile(t, func() bool {
		return h.record().has(fmt.Sprintf(laterRound, schema.ManifestsPrefix("rounds-killed"))) &&
			!h.record().has(schema.HeadKey("rounds-killed", "1"))
	}, "the second round of step 1")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	got := reportOf(t, run.wait(t).ok(t))
	require.Equal(t, want.Digest, got.Digest)
	require.Equal(t, h.record().outline(t, want.Run), h.record().outline(t, got.Run))
	h.run(t, "verify", got.Run).ok(t)

	t.Run("keeps as many groups as one round has", func(t *testing.T) {
		rounds := len(h.record().manifest(t, schema.At("rounds", 1, schema.StagePrompts).ManifestKey()).Parts)
		require.Greater(t, rounds, 1)
		sampled := h.count(t, "rounds", "select count(*) from prompts where step = 1")
		require.Equal(t, 8*rounds, sampled)
		require.Equal(t, 3*sampled, h.count(t, "rounds", "select count(*) from selection where step = 1"))
		require.Equal(t, 8,
			h.count(t, "rounds", "select count(distinct group_id) from selection where step = 1 and kept"))
		require.Positive(t, h.count(t, "rounds", "select count(*) from selection where reason = 'zero_variance'"))
	})
	t.Run("is replayed", func(t *testing.T) {
		c := h.run(t, "replay", "--check", got.Run).ok(t)
		require.Contains(t, c.out, " 0 differ; nothing was committed")
		require.Equal(t, map[string]bool{"resample": true, "advantage": true},
			same(h.replay(t, got.Run, "--step", "1", "--from", "resample")))
		other := h.replay(t, got.Run, "--step", "1", "--from", "resample", "--set", "resample.dynamic=null")
		require.Equal(t, map[string]bool{"resample": false, "advantage": false}, same(other))
		h.run(t, "verify", got.Run).ok(t)
	})
	t.Run("is shown", func(t *testing.T) {
		require.Contains(t, h.run(t, "show", "rounds", "--step", "1").ok(t).out, "zero_variance")
		require.Contains(t, strings.Join(h.record().outline(t, "rounds"), "\n"),
			"manifests/step=1/prompts/shard=1/gen=0.json")
		h.run(t, "report", "rounds", "-o", h.cwd+"/rounds.html").ok(t)
	})
}

// count returns the one number of a query over a run.
func (h *home) count(t *testing.T, run, query string) int {
	t.Helper()
	var got struct{ Rows [][]int }
	require.NoError(t, json.Unmarshal([]byte(h.run(t, "sql", "--run", run, "--json", query).ok(t).out), &got))
	return got.Rows[0][0]
}
