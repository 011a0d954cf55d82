package refusal_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
)

func TestKindsSurviveWrapping(t *testing.T) {
	for kind, err := range map[refusal.Kind]error{
		refusal.Corrupt:  refusal.Corruptf("trajectory %s has no turns", "a"),
		refusal.Unusable: refusal.Unusablef("trajectory %s has no turns", "a"),
	} {
		var refused *refusal.Error
		require.ErrorAs(t, fmt.Errorf("advantage: %w", err), &refused)
		require.Equal(t, kind, refused.Kind)
		require.EqualError(t, refused, "trajectory a has no turns")
	}
}
