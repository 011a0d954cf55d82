package engines

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestKindsAreConsistent(t *testing.T) {
	names := map[string]bool{}
	for _, k := range All {
		require.False(t, names[k.Name], k.Name)
		names[k.Name] = true
		require.NotEmpty(t, k.Doc, k.Name)
		require.Equal(t, k, Named(k.Name))
		require.Equal(t, k.Name != Auto, k.Shared != k.Leased, "%s is shared or leased", k.Name)
		require.False(t, k.Devices && k.Remote, k.Name)
		require.False(t, k.Shared && (k.Devices || k.Remote), k.Name)
	}
	require.Zero(t, Named("tpu"))
}

func TestUsual(t *testing.T) {
	require.Equal(t, "torch", Usual(true).Name)
	require.Equal(t, "cpu", Usual(false).Name)
}
