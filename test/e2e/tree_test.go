package e2e

import (
	"fmt"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/schema"
)

// A worker that is killed while trees grow, between two of their turns, changes nothing: the same leaves, branches and
// weights as those of an undisturbed run, which has all turns of a shard in one activity.
func TestKilledInTheMiddleOfATree(t *testing.T) {
	longform.Need(t, killsVariable, "test-kills")
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	tree := []string{"--set", "rollout.tree={rule: arpo, roots: 2, threshold: 0.3}", "--set", "steps=2"}
	want := h.train(t, "tree", append(tree, "--set", "rollout.mode=interleaved")...)
	run := h.start(t, recipe("tree-killed", tree...)...)
	worker := h.freezeWhile(t, func() bool { return h.record().growing("tree-killed") }, "trees to grow")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	got := run.wait(t).ok(t).report(t)
	require.Equal(t, want.Digest, got.Digest)
	branches := "select role, count(*), sum(shared), sum(copies) from branches group by role order by role"
	require.Equal(t, h.ask(t, "tree", branches).Rows, h.ask(t, "tree-killed", branches).Rows)
	require.Positive(t, h.rowsOf(t, "tree-killed", "branches where role = 'branch'"))
	h.intact(t, "tree-killed")
}

// growing reports whether a step has committed several turns of rollouts and nothing that follows them.
func (r record) growing(run string) bool {
	step := r.partialStep(run)
	stage := func(name string) int {
		return len(r.keys(fmt.Sprintf("%sstep=%d/%s/", schema.ManifestsPrefix(run), step, name)))
	}
	return step > 0 && stage("rollout") > 2 && stage("reward") == 0
}
