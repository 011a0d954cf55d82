package device_test

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock/dgxa100"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/internal/testing/golden"
)

var update = flag.Bool("update", false, "rewrite golden files")

func open(t *testing.T, lib nvml.Interface) *device.Host {
	t.Helper()
	h, err := device.Open(device.Options{Library: lib, Sysfs: t.TempDir()})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, h.Close()) })
	return h
}

func TestOpen(t *testing.T) {
	for _, c := range []struct {
		answer   nvml.Return
		noDriver bool
		want     string
	}{
		{nvml.ERROR_LIBRARY_NOT_FOUND, true, "libnvidia-ml.so.1 cannot be opened"},
		{nvml.ERROR_DRIVER_NOT_LOADED, true, "driver is not loaded"},
		{nvml.ERROR_LIB_RM_VERSION_MISMATCH, false, "different versions"},
		{nvml.ERROR_NO_PERMISSION, false, "ERROR_NO_PERMISSION"},
	} {
		lib := devicetest.New()
		lib.NoDriver = c.answer
		_, err := device.Open(device.Options{Library: lib})
		require.ErrorContains(t, err, c.want)
		require.Equal(t, c.noDriver, errorsIsNoDriver(err), "%v", err)
	}
}

// The real library, wherever the tests run: it opens, or says that there is no driver.
func TestOpenThisMachine(t *testing.T) {
	h, err := device.Open(device.Options{})
	if err != nil {
		require.ErrorIs(t, err, device.ErrNoDriver)
		return
	}
	defer h.Close()
	inv, err := h.Inventory()
	require.NoError(t, err)
	for _, d := range inv.Devices {
		require.NotEmpty(t, d.UUID+d.Lost)
	}
	t.Logf("%d devices, driver %s", len(inv.Devices), inv.Driver.Version)
}

// go-nvml's own DGX A100 tells little: what it does not tell is not supported, and nothing is an error.
func TestInventoryOfDGX(t *testing.T) {
	dgx := devicetest.DGX()
	inv, err := open(t, dgx).Inventory()
	require.NoError(t, err)
	require.Equal(t, device.Driver{Version: "550.54.15", NVML: "12.550.54.15", CUDA: "12.4"}, inv.Driver)
	require.Len(t, inv.Devices, 8)
	for i, d := range inv.Devices {
		require.Equal(t, i, d.Index)
		require.Equal(t, dgx.Devices[i].(*dgxa100.Device).UUID, d.UUID)
		require.Equal(t, "Mock NVIDIA A100-SXM4-40GB", d.Name)
		require.Equal(t, device.Some("8.0"), d.Capability)
		require.Equal(t, device.Some(int64(40<<30)), d.Memory.Total)
		require.Equal(t, device.Some(false), d.MIG.Enabled)
		require.False(t, d.Memory.Reserved.OK, "the mock has the first version of the call only")
		require.False(t, d.Temperature.GPU.OK)
		require.False(t, d.Processes.OK)
		require.Empty(t, d.Faults)
		require.Empty(t, d.Lost)
	}
	require.Equal(t, device.PathUnknown, inv.Topology.Paths[0][7])
	require.Equal(t, 0, inv.Topology.Links[0][7])
}

func TestInventoryJSON(t *testing.T) {
	lib := devicetest.New(
		&devicetest.GPU{Peers: map[int]int{1: 18}, Near: map[int]nvml.GpuTopologyLevel{1: nvml.TOPOLOGY_SINGLE},
			Used:    20 * devicetest.GiB,
			Reasons: nvml.ClocksEventReasonSwPowerCap | nvml.ClocksEventReasonSwThermalSlowdown, RowPending: true,
			Processes: []nvml.ProcessInfo{{Pid: 4711, UsedGpuMemory: 20 * devicetest.GiB},
				{Pid: 4712, UsedGpuMemory: ^uint64(0)}}},
		&devicetest.GPU{NUMA: 1, Peers: map[int]int{0: 18}, Unknown: map[string]bool{"GetPowerUsage": true},
			Uncorrected: 2,
			MIG: []devicetest.Slice{
				{UUID: "MIG-1", Name: "NVIDIA H200 MIG 1g.18gb", Total: 18 * devicetest.GiB}}},
		&devicetest.GPU{Unsupported: map[string]bool{"GetMemoryInfo_v2": true, "GetRemappedRows": true,
			"GetTotalEccErrors": true, "GetEccMode": true,
			"GetCurrentClocksEventReasons": true, "GetCurrentClocksThrottleReasons": true, "GetMigMode": true,
			"GetFieldValues": true, "GetMemoryAffinity": true}},
		&devicetest.GPU{Lost: true},
	)
	inv, err := open(t, lib).Inventory()
	require.NoError(t, err)
	text, err := json.MarshalIndent(inv, "", "  ")
	require.NoError(t, err)
	golden.Check(t, "inventory.json", string(text)+"\n", *update)
	var back device.Inventory
	require.NoError(t, json.Unmarshal(text, &back))
	require.Equal(t, inv, back)
}

// A function that the driver's library lacks is never called: the call would end the process.
func TestFunctionsThatTheLibraryLacks(t *testing.T) {
	gpu := &devicetest.GPU{}
	lib := devicetest.New(gpu)
	lib.Missing = map[string]bool{
		"nvmlDeviceGetMemoryInfo_v2": true, "nvmlDeviceGetRemappedRows": true,
		"nvmlDeviceGetCurrentClocksEventReasons": true,
	}
	called := gpu.Count("GetMemoryInfo_v2", "GetRemappedRows", "GetCurrentClocksEventReasons")
	inv, err := open(t, lib).Inventory()
	require.NoError(t, err)
	require.Zero(t, called())
	d := inv.Devices[0]
	require.Equal(t, device.Some(int64(141*devicetest.GiB)), d.Memory.Total, "by the first version of the call")
	require.Equal(t, device.Some([]string{}), d.Clocks.Reasons, "by the older name")
	require.False(t, d.Rows.Pending.OK)
}

// One device that the driver fails on is no reason to see none.
func TestInventoryWithOneSickDevice(t *testing.T) {
	sick := &devicetest.GPU{Unknown: map[string]bool{"GetHandle": true}}
	inv, err := open(t, devicetest.New(&devicetest.GPU{}, sick)).Inventory()
	require.NoError(t, err)
	require.Empty(t, inv.Devices[0].Lost)
	require.Equal(t, "cannot be asked: ERROR_UNKNOWN", inv.Devices[1].Lost)
	require.Equal(t, device.Failed, device.Assess(inv.Devices[1]).State)
}

func TestNUMANodeFromTheKernel(t *testing.T) {
	sysfs := t.TempDir()
	writeFile(t, sysfs+"/bus/pci/devices/0000:01:00.0/numa_node", "3\n")
	writeFile(t, sysfs+"/bus/pci/devices/0000:02:00.0/numa_node", "-1\n")
	silent := map[string]bool{"GetMemoryAffinity": true}
	lib := devicetest.New(
		&devicetest.GPU{Unsupported: silent}, &devicetest.GPU{Unsupported: silent}, &devicetest.GPU{NUMA: 5},
	)
	h, err := device.Open(device.Options{Library: lib, Sysfs: sysfs})
	require.NoError(t, err)
	inv, err := h.Inventory()
	require.NoError(t, err)
	require.Equal(t, device.Some(int64(3)), inv.Devices[0].NUMA)
	require.False(t, inv.Devices[1].NUMA.OK)
	require.Equal(t, device.Some(int64(5)), inv.Devices[2].NUMA)
}
