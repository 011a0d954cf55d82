package sandbox

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestOrDefault(t *testing.T) {
	require.Equal(t, DefaultLimits, Limits{}.OrDefault())
	require.Equal(t, Limits{CPU: time.Second, Wall: 10 * time.Second, MemoryBytes: 256 << 20, OutputBytes: 64 << 10},
		Limits{CPU: time.Second}.OrDefault())
	whole := Limits{CPU: 1, Wall: 2, MemoryBytes: 3, OutputBytes: 4}
	require.Equal(t, whole, whole.OrDefault())
}

func TestOnlyOKDidNotFail(t *testing.T) {
	require.False(t, StatusOK.Failed())
	for _, s := range []Status{StatusRuntime, StatusSyntax, StatusTimeoutWall, StatusTimeoutCPU, StatusOutOfMemory, StatusOutputLimit, StatusKilled} {
		require.True(t, s.Failed(), s)
	}
}
