package zygote

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

func TestWeakerTiersAreRefusedUnlessNamed(t *testing.T) {
	full, landlock, rlimits := sandbox.TierFull, sandbox.TierLandlock, sandbox.TierRlimits
	for _, c := range []struct {
		options  Options
		obtained sandbox.Tier
		fits     bool
	}{
		{Options{}, full, true},
		{Options{}, landlock, false},
		{Options{}, rlimits, false},
		{Options{MinTier: landlock}, full, true},
		{Options{MinTier: landlock}, landlock, true},
		{Options{MinTier: landlock}, rlimits, false},
		{Options{MinTier: rlimits}, rlimits, true},
		{Options{Tier: rlimits}, rlimits, true},
	} {
		err := c.options.tooWeak(c.obtained, []error{errors.New("full: no namespaces")})
		require.Equal(t, c.fits, err == nil, "%+v, %s", c.options, c.obtained)
		if !c.fits {
			require.ErrorIs(t, err, sandbox.ErrTier)
			require.ErrorContains(t, err, "grants tier "+string(c.obtained))
			require.ErrorContains(t, err, "full: no namespaces")
			require.ErrorContains(t, err, "ropewalk sandbox doctor")
		}
	}
}

func TestOpenKnowsItsTiers(t *testing.T) {
	for _, o := range []Options{{MinTier: "strong"}, {Tier: "strong"}} {
		_, err := Open(o)
		require.ErrorContains(t, err, `tier "strong" is not one of full, landlock, rlimits`)
	}
}

// Sessions are never opened in a tier weaker than requested, whatever interpreter is found.
func TestSessionsKeepTheMinTier(t *testing.T) {
	_, err := OpenSessions(Options{MinTier: sandbox.TierLandlock,
		Sets: []PackageSet{{Name: "none", Modules: []string{"no_such_module"}}}})
	if errors.Is(err, sandbox.ErrNoPython) {
		t.Skip(err)
	}
	require.ErrorIs(t, err, sandbox.ErrTier)
	require.ErrorContains(t, err, "landlock is the weakest that is accepted")
}
