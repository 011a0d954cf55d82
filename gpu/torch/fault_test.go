package torch

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// TestLost: whatever loses an engine says so with ErrLost, its reason and what was seen; calls go on saying so until
// the next Load, which brings up another one; nothing is left of the first.
func TestLost(t *testing.T) {
	for _, c := range []struct {
		mode   string
		reason lostReason
		want   []string
	}{
		{
			"die:forward", lostDied,
			[]string{"signal: killed", "in a call of forward", "CUDA error: an illegal memory access"},
		},
		{"hang:forward", lostHung, []string{"nothing got done for", "File \"model.py\", line 7 in forward"}},
		{"stop:forward", lostHung, []string{"nothing got done for", "none: no rank answered"}},
		{"garbage:forward", lostBroke, []string{"a frame begins with"}},
		{"complain:forward", lostBroke, []string{`the engine says: protocol: array "tokens" is missing`}},
		{"other id:forward", lostBroke, []string{"an answer to call 3 while 2 was asked"}},
		{"unknown field:forward", lostBroke, []string{"unknown field"}},
		{"big:forward", lostBroke, []string{"a body of 41943"}},
		{"no array:forward", lostBroke, []string{`array "logprobs" is missing`}},
		{"surplus array:forward", lostBroke, []string{`array "values" is surplus`}},
		{"short array:forward", lostBroke, []string{`array "logprobs" holds 2 × F32, want 3 × F32`}},
		{"keeps:forward", lostBroke, []string{"a pass is kept as 4, keep being false"}},
		{"error internal:forward", lostInternal, []string{"it failed: internal: so it is"}},
		{"error protocol:forward", lostBroke, []string{"the engine says: so it is"}},
		{"error cancelled:forward", lostInternal, []string{"cancelled: so it is"}}, // no one cancelled the call
		{"error surprise:forward", lostInternal, []string{"it failed: surprise: so it is"}},
	} {
		t.Run(c.mode, func(t *testing.T) {
			e, log := openFake(t, c.mode)
			ctx, dir := t.Context(), ""
			dir, _ = fakeFolder(t, "w")
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			first := e.latest()
			if c.reason == lostHung {
				first.opts.HangLimit = 100 * time.Millisecond
			}
			if strings.HasPrefix(c.mode, "stop") {
				first.opts.stackGrace = 100 * time.Millisecond // no stack comes
			}
			_, err := e.Forward(ctx, one)
			require.ErrorIs(t, err, policy.ErrLost)
			var lost *lostError
			require.ErrorAs(t, err, &lost)
			require.Equal(t, c.reason, lost.Reason)
			for _, w := range c.want {
				require.ErrorContains(t, err, w)
			}
			require.Contains(t, log.String(), "engine lost")
			_, there := parents()[first.tree.root]
			require.False(t, there)
			require.NoDirExists(t, first.dir)

			_, err = e.Step(ctx, policy.RolePolicy, policy.StepOptions{Rule: optimizer.AdamW{}})
			require.ErrorIs(t, err, policy.ErrLost)
			require.ErrorIs(t, e.Discard(ctx, policy.RolePolicy), policy.ErrLost)
			s, err := e.State(ctx, policy.RolePolicy)
			require.NoError(t, err)
			require.Zero(t, s, "nothing is resident")

			e.opts.command[2] = "ok"
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			_, err = e.Forward(ctx, one)
			require.NoError(t, err)
			require.Equal(t, 2, e.Usage().Starts)
		})
	}
}

// A call that cannot be encoded is refused, and the engine serves on.
func TestCallThatCannotBeEncoded(t *testing.T) {
	e, _ := openFake(t, "ok")
	req := one
	req.Role = policy.Role(strings.Repeat("x", 2<<20))
	_, err := e.Forward(t.Context(), req)
	require.ErrorIs(t, err, policy.ErrBadRequest)
	_, err = e.Forward(t.Context(), one)
	require.NoError(t, err)
}

// A second answer to one call is seen when it comes: at the end of the call, or by the next one.
func TestTwoAnswers(t *testing.T) {
	e, _ := openFake(t, "twice:discard")
	if err := e.Discard(t.Context(), policy.RolePolicy); err != nil {
		require.ErrorIs(t, err, policy.ErrLost)
	}
	require.ErrorIs(t, e.Discard(t.Context(), policy.RolePolicy), policy.ErrLost)
}

func TestDigestOfTheEngineIsHeldAgainstTheFolder(t *testing.T) {
	e, _ := openFake(t, "other digest:load")
	dir, _ := fakeFolder(t, "w")
	err := e.Load(t.Context(), policy.RolePolicy, dir, true)
	require.ErrorIs(t, err, policy.ErrLost)
	require.ErrorContains(t, err, `has the digest "feed"`)
}
