package device_test

import (
	"errors"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// go-nvml itself, over a real shared library that has few of NVML's functions: none of the others is called, which
// would end this process, and events find the device that they are of.
func TestOldDriversLibrary(t *testing.T) {
	cc := os.Getenv("CC")
	if cc == "" {
		cc = "cc"
	}
	lib := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	out, err := exec.Command(cc, "-shared", "-fPIC", "-o", lib, "testdata/nvml.c").CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		t.Skip("no C compiler")
	}
	require.NoError(t, err, string(out))
	h, err := device.Open(device.Options{Library: nvml.New(nvml.WithLibraryPath(lib)), Sysfs: t.TempDir()})
	require.NoError(t, err)
	defer h.Close()
	inv, err := h.Inventory()
	require.NoError(t, err)
	require.Equal(t, device.Driver{Version: "450.1"}, inv.Driver)
	require.Len(t, inv.Devices, 1)
	require.Equal(t, device.Device{Index: 0, UUID: "GPU-old", Name: "Old GPU",
		Memory: device.Memory{
			Total: device.Some(int64(100)), Used: device.Some(int64(40)), Free: device.Some(int64(60)),
		},
		Faults: map[string]string{"power.limit": "Unknown Error"},
	}, inv.Devices[0])

	w, err := h.Watch(device.WatchOptions{Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	defer w.Close()
	eventually(t, "failed by the Xid", func() bool { return state(w, 0) == device.Failed })
	require.Equal(t, device.Kind("gpu_xid_79"), w.Status()[0].Health.Reasons[0].Kind)
}
