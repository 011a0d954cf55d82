package verify_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/verify"
)

// Help and documentation list the checks, so each has a name of its own and one line about it.
func TestChecksDescribeThemselves(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range verify.Checks() {
		require.False(t, seen[c.Name], c.Name)
		seen[c.Name] = true
		require.Regexp(t, `^[a-z][^\n]{20,90}$`, c.About, c.Name)
	}
	require.Greater(t, len(seen), 10)
}
