package zygote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
)

// version simulates a kernel with a version of Landlock.
func version(n int) func() (int, error) { return func() (int, error) { return n, nil } }

func TestLandlockBelowVersionThreeIsRefused(t *testing.T) {
	for n, holds := range map[int]bool{1: false, 2: false, 3: true, 7: true} {
		require.Equal(t, holds, landlockHolds(sandbox.TierLandlock, version(n)) == nil, "version %d", n)
		require.NoError(t, landlockHolds(sandbox.TierFull, version(n)), "no other tier relies on it")
		require.NoError(t, landlockHolds(sandbox.TierRlimits, version(n)))
	}
	gone := errors.New("no such call")
	require.ErrorIs(t, landlockHolds(sandbox.TierLandlock, func() (int, error) { return 0, gone }), gone)
}

// On such a kernel neither calls nor sessions get the tier, whether it is named or is the next best one.
func TestNoTierLandlockOnAnOlderKernel(t *testing.T) {
	open(t, Options{Workers: 1, MinTier: sandbox.TierRlimits}) // skips the test if no tier works
	for _, o := range []Options{{Tier: sandbox.TierLandlock},
		{MinTier: sandbox.TierLandlock, Tier: sandbox.TierLandlock}} {
		o.Workers, o.Landlock = 1, version(2)
		_, err := Open(o)
		require.ErrorContains(t, err, "version 3 is needed")
		_, err = OpenSessions(o)
		require.ErrorContains(t, err, "version 3 is needed")
	}
}

// This is the purpose of the version: a call cannot truncate a file of the user that it runs as.
func TestLandlockRefusesTruncation(t *testing.T) {
	e := open(t, Options{Tier: sandbox.TierLandlock, Workers: 1})
	folder, err := os.MkdirTemp("/var/tmp", "ropewalk-truncate-")
	require.NoError(t, err)
	defer os.RemoveAll(folder)
	require.NoError(t, os.Chmod(folder, 0o755))
	file := filepath.Join(folder, "owned")
	require.NoError(t, os.WriteFile(file, []byte("precious"), 0o600))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(file, unprivileged, unprivileged))
	}
	got := run(t, e,
		fmt.Sprintf("import os\ntry:\n    os.truncate(%q, 0)\nexcept PermissionError:\n    print('refused')", file))
	require.Equal(t, "refused\n", got.Stdout, got.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, "precious", string(text))
}
