package activities

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/learner"
	"github.com/ropewalk/ropewalk/schema"
)

// TestSlotForgetsWhatALostEngineHeld: after ErrLost the next use must load, whatever role it is of; after another error
// it need not.
func TestSlotForgetsWhatALostEngineHeld(t *testing.T) {
	ref := wire.PolicyRef{Digest: "d"}
	for _, c := range []struct {
		err    error
		forget bool
	}{
		{nil, false},
		{context.Canceled, false},
		{policy.ErrOutOfMemory, false},
		{fmt.Errorf("forward: %w: died", policy.ErrLost), true},
		{fmt.Errorf("forward: %w", policy.ErrNotLoaded), true},
	} {
		for name, use := range map[string]func(s *slot) error{
			"policy": func(s *slot) error {
				return s.use(t.Context(), ref, true, func(policy.Engine) error { return c.err })
			},
			"critic": func(s *slot) error {
				return s.useAs(t.Context(), policy.RoleCritic, ref, func(policy.Engine) error { return c.err })
			},
		} {
			s := newSlot(nil, nil, "")
			s.resident, s.optimizer = "d", true
			s.others[policy.RoleCritic], s.others[policy.RoleReference] = "d", "r"
			require.True(t, errors.Is(use(s), c.err), name)
			if c.forget {
				require.Empty(t, s.resident, name)
				require.Empty(t, s.others, name)
				continue
			}
			require.Equal(t, "d", s.resident, name)
			require.Len(t, s.others, 2, name)
		}
	}
}

func TestNoteMemory(t *testing.T) {
	var m schema.Manifest
	noteMemory(&m, noteSmaller, nil)
	require.Nil(t, m.Note, "nothing was full")
	noteMemory(&m, noteSmaller, &learner.Smaller{From: 4096, To: 2048})
	noteMemory(&m, noteCriticSmaller, &learner.Smaller{From: 100, To: 50})
	require.Equal(t, map[string]string{
		"microbatch_tokens": "2048 after 4096: the engine's memory was full", "critic_microbatch_tokens": "50 after 100: the engine's memory was full",
	}, m.Note)
}
