package inventory_test

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
)

// report asks a host with these devices, of which none is leased.
func report(t *testing.T, gpus ...*devicetest.GPU) inventory.Report {
	t.Helper()
	leases := filepath.Join(t.TempDir(), "leases")
	r, err := inventory.Of(t.Context(), device.Options{Library: devicetest.New(gpus...)}, leases)
	require.NoError(t, err)
	require.NoDirExists(t, leases, "a report leaves nothing behind")
	return r
}

// A host whose devices are all broken is not a host without devices: the reason says so.
func TestWithoutSoundDevice(t *testing.T) {
	r := report(t, &devicetest.GPU{Lost: true})
	require.Equal(t, inventory.Engine{Kind: "cpu", Why: "0 of 1 devices can be leased"}, r.Engine)
}

func TestOnlySoundDevicesCanBeLeased(t *testing.T) {
	r := report(t, &devicetest.GPU{}, &devicetest.GPU{Lost: true},
		&devicetest.GPU{MIG: []devicetest.Slice{{UUID: "MIG-1"}}})
	require.Equal(t, inventory.Engine{Kind: "torch", Why: "1 of 3 devices can be leased"}, r.Engine)
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	require.Contains(t, out.String(), "engine torch: 1 of 3 devices can be leased")
}

func TestWithoutDriver(t *testing.T) {
	lib := devicetest.New()
	lib.NoDriver = 12 // ERROR_LIBRARY_NOT_FOUND
	r, err := inventory.Of(t.Context(), device.Options{Library: lib}, t.TempDir())
	require.NoError(t, err)
	require.Nil(t, r.Driver)
	require.Equal(t, "cpu", r.Engine.Kind)
	var out bytes.Buffer
	require.NoError(t, r.WriteText(&out))
	require.Contains(t, out.String(), "no NVIDIA driver")
}
