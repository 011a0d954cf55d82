package e2e

import (
	"context"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/workflows"
)

// A fork ends in the other run's policy, whether or not its worker is killed on the way, and whether the command or
// Temporal's UI starts it.
func TestForksOfTheCommandAndOfTheUI(t *testing.T) {
	h, want := needs(t, ownNamespace)
	h.ensureUp(t)
	const of, step = "base", "3"
	run := h.start(t, "fork", of, "--step", step, "--json", "--run-id", "fork")
	require.NoError(t, syscall.Kill(h.freezeInMidStep(t, "fork"), syscall.SIGKILL))
	got := run.wait(t).ok(t)
	require.Equal(t, want.Digest, got.report(t).Digest)
	require.Regexp(t, `success +\d`, got.err)
	require.Contains(t, h.run(t, "show", "fork").ok(t).out, "a fork of run base: steps 1 to 3 are its")
	h.run(t, "verify", "fork").ok(t)
	require.Contains(t, h.run(t, "diff", of, "fork").ok(t).out,
		"A and B are equal in all that both recorded: 4 steps")

	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var out workflows.TrainRunResult
	other := map[string]any{"of": of, "step": 3, "set": []string{"optimizer.lr=0.01"}}
	require.NoError(t, startFromUI(t, h.dial(t), workflows.ForkRunName, "from-the-ui", other).Get(ctx, &out))
	require.Equal(t, "from-the-ui", out.Run)
	require.NotEqual(t, want.Digest, out.Policy.Digest)
	refused := h.run(t, "delete", of)
	require.Equal(t, 2, refused.code)
	require.Contains(t, refused.err, "run base shares its steps with its forks: delete fork and from-the-ui first")
	refused = h.run(t, "fork", of, "--step", "1")
	require.Equal(t, 2, refused.code)
	require.Contains(t, refused.err, "the policy after step 1 of run base is pruned")
}
