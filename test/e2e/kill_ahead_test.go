package e2e

import (
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
)

// The worker of a pipelined run is killed while two steps are open: one learns, and the next one is sampled. The run
// ends with the rows and weights of an undisturbed one. What was committed before the kill, the groups that were
// sampled ahead included, is still there and was not made again.
func TestKilledWorkerLosesNoGroupAhead(t *testing.T) {
	longform.Need(t, killsVariable, "test-kills")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	ahead := []string{"--set", "pipeline.max_staleness=1", "--set", "loss.old_log_probs=recompute", "--set",
		"rollout.mode=interleaved", "--set", "rollout.shard_groups=1"}
	want := h.train(t, "ahead", ahead...)
	run := h.start(t, recipe("ahead-killed", ahead...)...)
	worker := h.freezeWhile(t, func() bool {
		require.True(t, run.running(), "the run has ended before two steps were open: %s", run.err.String())
		return len(h.record().sampledAhead("ahead-killed")) > 0
	}, "groups to be sampled ahead")
	groups := h.record().sampledAhead("ahead-killed")
	before := h.stamps(t, "ahead-killed")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	after := h.stamps(t, "ahead-killed")
	for key, stamp := range before {
		require.Equal(t, stamp, after[key], "%s was committed before the kill", key)
	}
	require.NotEmpty(t, groups)
	for _, key := range groups {
		require.Contains(t, before, key)
	}
}

// sampledAhead lists the manifests with the rewards of groups whose step cannot learn yet, because an earlier one is
// not finished.
func (r record) sampledAhead(run string) (keys []string) {
	for step := 2; step <= steps; step++ {
		if r.has(schema.HeadKey(run, fmt.Sprint(step-1))) {
			continue
		}
		for _, key := range r.keys(fmt.Sprintf("%sstep=%d/", schema.ManifestsPrefix(run), step)) {
			if strings.Contains(key, "/reward") {
				keys = append(keys, key)
			}
		}
	}
	return keys
}
