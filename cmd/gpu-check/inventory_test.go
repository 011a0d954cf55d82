package main

import (
	"bytes"
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
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

	require.Equal(t, bench.StatusOK, r.Parts["inventory"].Status, r.Parts["inventory"].Why)
	h := readReport(t, file)
	require.Positive(t, figure(t, h, "inventory", "device 1: memory", "GiB"))
	require.Greater(t, figure(t, h, "inventory", "metrics", "series"), 10.0)
	var table bytes.Buffer
	r.print(&table)
	require.Contains(t, table.String(), "device 1: health")
	require.Contains(t, table.String(), string(device.KindRemapPending))
}
