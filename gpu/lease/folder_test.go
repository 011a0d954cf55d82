package lease_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

// A mark of an earlier start of the machine is void; one that cannot be read keeps its own device back alone.
func TestMarks(t *testing.T) {
	dir := t.TempDir()
	require.NoError(
		t,
		os.WriteFile(
			filepath.Join(dir, "GPU-00000000.failed"), []byte(`{"kind":"gpu_xid_79","boot":"another"}`), 0o644,
		),
	)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "GPU-00000001.failed"), []byte(`{"kind":`), 0o644))
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(dir, "GPU-00000002.failed")))
	p, _ := open(t, dir, devicetest.New(&devicetest.GPU{}, &devicetest.GPU{}, &devicetest.GPU{}))
	require.Equal(t, []string{"GPU-00000000"}, take(t, p, one()).UUIDs())
	_, err := p.Take(soon(t), one())
	require.ErrorContains(t, err, "device 1: read the mark of device GPU-00000001")
	require.ErrorContains(t, err, "device 2: read the mark of device GPU-00000002")
}

func TestFolders(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{})
	h, err := device.Open(device.Options{Library: lib})
	require.NoError(t, err)
	w, err := h.Watch(device.WatchOptions{})
	require.NoError(t, err)
	defer w.Close()
	dir := t.TempDir()
	elsewhere := filepath.Join(dir, "link")
	require.NoError(t, os.Symlink(t.TempDir(), elsewhere))
	_, err = lease.Open(w, lease.Options{Dir: elsewhere})
	require.ErrorContains(t, err, "is not a folder")
	file := filepath.Join(dir, "file")
	require.NoError(t, os.WriteFile(file, nil, 0o644))
	_, err = lease.Open(w, lease.Options{Dir: file})
	require.ErrorContains(t, err, lease.DirVariable)

	made := filepath.Join(dir, "a", "leases")
	p, err := lease.Open(w, lease.Options{Dir: made})
	require.NoError(t, err)
	info, err := os.Stat(made)
	require.NoError(t, err)
	require.Equal(t, os.ModeDir|os.ModeSticky|0o777, info.Mode(), "every user of the host can take leases")
	require.NoError(t, os.Symlink("/etc/hostname", filepath.Join(made, "GPU-00000000.lock")))
	_, err = p.Take(t.Context(), one())
	require.Error(t, err)
	require.NotErrorIs(t, err, lease.ErrNoDevice, "a lock that leads elsewhere is breakage")
	require.NoError(t, p.Close())

	none, err := lease.Peek(t.Context(), filepath.Join(dir, "nothing"), []string{"GPU-00000000"})
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoDirExists(t, filepath.Join(dir, "nothing"), "looking makes nothing")
}

// Names come from the driver, and still none leads out of the folder.
func TestOddUUIDs(t *testing.T) {
	dir := t.TempDir()
	p, _ := open(t, filepath.Join(dir, "leases"), devicetest.New(&devicetest.GPU{UUID: "../../GPU/x"}))
	take(t, p, one())
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	locks, err := filepath.Glob(filepath.Join(dir, "leases", "*.lock"))
	require.NoError(t, err)
	require.Len(t, locks, 2, strings.Join(locks, " "))
}
