package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/device/devicetest"
	"github.com/ropewalk/ropewalk/internal/bench"
)

// The part runs over a scripted driver of two devices, one of which has something against it.
func TestInventory(t *testing.T) {
	lib := devicetest.New(&devicetest.GPU{}, &devicetest.GPU{RowPending: true})
	host, err := device.Open(device.Options{Library: lib})
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "out.json")
	l, r := testLab(t, file)
	l.host, l.log = host, slog.New(slog.DiscardHandler)
	l.machine, err = thisHardware(host)
	require.NoError(t, err)
	require.Len(t, l.machine.GPUs, 2)
	require.Positive(t, l.machine.GPUMemoryBytes)
	require.NoError(t, runParts(t.Context(), l, []part{{"inventory", inventory}}, r, &bytes.Buffer{}))

	require.Equal(t, bench.StatusOK, r.parts["inventory"].Status, r.parts["inventory"].Why)
	found := figuresOf[inventoryFigures](t, readReport(t, file), "inventory")
	require.Len(t, found.Devices, 2)
	require.Equal(t, device.Degraded, found.Health[1].State)
	metrics := strings.Join(found.Metrics, "\n")
	require.Contains(t, metrics, "ropewalk_gpu_devices 2")
	require.Contains(t, metrics, "ropewalk_gpu_memory_total_bytes{")
	var table bytes.Buffer
	r.print(&table)
	require.Contains(t, table.String(), "device 1: health")
	require.Contains(t, table.String(), string(device.KindRemapPending))
}
