package stack

import (
	"os"
	"testing"

	"github.com/stretchr/testify/require"
)

// Running returns the addresses with the keys that a program needs. It returns nothing for a stack that has ended.
func TestRunning(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	of := func() (Addresses, error) { return Running(Options{Root: root}) }
	_, err := of()
	require.ErrorIs(t, err, ErrNotRunning)

	l, _ := join(t, root, func(o *Options) { o.NoWorker = true })
	got, err := of()
	require.NoError(t, err)
	require.Equal(t, l.Addresses().Env(), got.Env())
	require.NotEmpty(t, got.SecretKey)

	left, err := os.ReadFile(layout{root}.state(temporalName))
	require.NoError(t, err)
	require.NoError(t, l.Close())
	_, err = of()
	require.ErrorIs(t, err, ErrNotRunning)
	require.NoError(t, os.WriteFile(layout{root}.state(temporalName), left, 0o600)) // as a killed supervisor leaves it
	_, err = of()
	require.ErrorIs(t, err, ErrNotRunning)
	require.ErrorContains(t, err, root)
}
