package e2e

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
)

// A short run of the recipe household ends with a record that `verify` accepts, and its pure stages can be made again.
func TestHousehold(t *testing.T) {
	t.Parallel()
	h := newHome(t, t.TempDir())
	h.ensureUp(t)
	t.Cleanup(func() { h.ensureDown(t) })
	args := []string{"run", "household", "--json", "--run-id", "house"}
	for _, s := range []string{"warm_start.steps=40", "evaluation.problems=8", "evaluation.samples=1",
		"rollout.prompts=4", "rollout.samples_per_prompt=4", "rollout.shard_groups=2", fmt.Sprint("steps=", steps)} {
		args = append(args, "--set", s)
	}
	report := h.run(t, args...).ok(t).report(t)
	require.NotEmpty(t, report.Digest)
	h.run(t, "verify", "house").ok(t)
	var check struct{ Differs int }
	r := h.run(t, "replay", "--check", "house", "--json").ok(t)
	require.NoError(t, json.Unmarshal([]byte(r.out), &check), r.out)
	require.Zero(t, check.Differs)
}
