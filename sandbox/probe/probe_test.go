package probe

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// The probe reports the same tier that opening an executor gets.
func TestMachine(t *testing.T) {
	r := Machine(t.Context(), "")
	e, err := zygote.Open(zygote.Options{Workers: 1, MinTier: sandbox.TierRlimits})
	if errors.Is(err, sandbox.ErrNoPython) {
		require.Empty(t, r.Tier)
		t.Skip(err)
	}
	require.NoError(t, err)
	defer e.Close()
	require.Equal(t, e.Isolation(), string(r.Tier))
	path, version := e.Python()
	require.Equal(t, []string{path, version}, []string{r.Python, r.Version})
	require.Len(t, r.Tiers, len(sandbox.Tiers()))
	require.Len(t, r.Packages, len(libraries))
	obtained := map[string]bool{}
	for _, l := range r.Lines {
		require.NotEmpty(t, l.Reason, l.What)
		require.NotEmpty(t, l.Without, l.What)
		obtained[l.What] = l.Obtained
	}
	if r.Tier == sandbox.TierFull {
		for _, what := range []string{"user namespace", "mount namespace", "process namespace", "network namespace",
			"IPC namespace", "host name namespace", "seccomp filter", "tmpfs"} {
			require.True(t, obtained[what], what)
		}
	}
}

func TestAMissingInterpreterIsReported(t *testing.T) {
	r := Machine(t.Context(), "/nowhere/python3")
	require.Empty(t, r.Tier)
	for _, line := range r.Tiers {
		require.False(t, line.Obtained)
		require.Contains(t, line.Reason, "/nowhere/python3")
	}
}
