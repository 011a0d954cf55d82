package e2e

import (
	"encoding/json"
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
)

// pushing is the built-in recipe sokoban with a warm start of seconds.
func pushing(run string, more ...string) []string {
	set := []string{"warm_start.steps=40", "rollout.prompts=4", "rollout.shard_groups=2", "evaluation.problems=4",
		"evaluation.samples=1", "steps=2"}
	args := []string{"run", "sokoban", "--json", "--run-id", run}
	for _, s := range append(set, more...) {
		args = append(args, "--set", s)
	}
	return args
}

// Runs in an interactive environment end in the same policy whether or not their worker is killed on the way. `verify`
// accepts their record, and the record's pure stages can be made again.
func TestInteractiveEnvironment(t *testing.T) {
	longform.Need(t, environmentsVariable, "test-environments")
	h, _ := needs(t, emptyNamespace)
	h.ensureUp(t)
	const name = "gigpo"
	want := h.run(t, pushing(name, "advantage.anchor=state")...).ok(t).report(t)
	h.run(t, "verify", name).ok(t)
	var got struct{ Rows [][]any }
	r := h.run(t, "sql", "--run", name, "--json",
		"select count(*), count(distinct step), (select count(*) from turns), sum(reward) - (select "+
			"sum(reward) from rewards) from transitions").ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &got), r.out)
	require.EqualValues(t, 2, got.Rows[0][1])
	require.Equal(t, got.Rows[0][2], got.Rows[0][0], "each turn has a transition")
	require.InDelta(t, 0, got.Rows[0][3], 1e-6, "what the environment pays is the reward")
	r = h.run(t, "sql", "--run", name, "--csv", "select count(*) > 0 from evaluation_transitions").ok(t)
	require.Equal(t, "true", lastLine(r.out))
	var check struct{ Differs int }
	r = h.run(t, "replay", "--check", name, "--json").ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &check), r.out)
	require.Zero(t, check.Differs)

	killed := name + "-killed"
	run := h.start(t, pushing(killed, "advantage.anchor=state")...)
	require.NoError(t, syscall.Kill(h.freezeInMidStep(t, killed), syscall.SIGKILL))
	again := run.wait(t).ok(t).report(t)
	require.Equal(t, want.Digest, again.Digest)
	require.Equal(t, h.record().outline(t, name), h.record().outline(t, killed))
	h.run(t, "verify", killed).ok(t)
	require.NotEmpty(t, h.record().keys(fmt.Sprintf("runs/run=%s/table=%s/", killed, schema.Transitions)))
}
