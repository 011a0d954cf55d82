package probe

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// On a kernel whose Landlock does not refuse truncate(2) there is no tier landlock, and the report says so.
func TestOldLandlockIsReportedAsUnavailable(t *testing.T) {
	r := machine(t.Context(), "", func() (int, error) { return 2, nil })
	for _, line := range r.Tiers {
		if line.Tier == sandbox.TierLandlock {
			require.False(t, line.Obtained)
			require.Contains(t, line.Reason, "Landlock version 2")
			require.Contains(t, line.Reason, "version 3 is needed")
		}
	}
	for _, line := range r.Lines {
		if line.What == "Landlock" {
			require.False(t, line.Obtained)
			require.Equal(t, "version 2; version 3 is needed, the first that refuses truncate(2)", line.Reason)
			return
		}
	}
	t.Fatal("no line about Landlock")
}
