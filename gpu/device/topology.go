package device

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Path is the nearest common part of the PCIe connection of two devices, by nvidia-smi's names.
type Path string

// Paths, near to far.
const (
	PathSelf    Path = "X"
	PathBoard   Path = "PSB"  // one board
	PathSwitch  Path = "PIX"  // one PCIe switch
	PathBridges Path = "PXB"  // several PCIe switches
	PathHost    Path = "PHB"  // a host bridge
	PathNode    Path = "NODE" // host bridges of one NUMA node
	PathSystem  Path = "SYS"  // across NUMA nodes
	PathUnknown Path = "?"
)

// Distance orders paths from near to far. 0 is the device itself. An unknown path is the farthest.
func (p Path) Distance() int {
	for i, other := range []Path{PathSelf, PathBoard, PathSwitch, PathBridges, PathHost, PathNode, PathSystem} {
		if p == other {
			return i
		}
	}
	return 7
}

var levels = map[nvml.GpuTopologyLevel]Path{
	nvml.TOPOLOGY_INTERNAL: PathBoard, nvml.TOPOLOGY_SINGLE: PathSwitch, nvml.TOPOLOGY_MULTIPLE: PathBridges,
	nvml.TOPOLOGY_HOSTBRIDGE: PathHost, nvml.TOPOLOGY_NODE: PathNode, nvml.TOPOLOGY_SYSTEM: PathSystem,
}

// Topology says how each pair of devices is connected, in the order of the inventory's devices.
type Topology struct {
	UUIDs []string `json:"uuids"`
	Paths [][]Path `json:"paths"` // [devices][devices]
	// Links counts the active NVLinks between two devices, directly or each to a switch. It is 1 if the driver only
	// says that NVLink joins them, without a number.
	Links [][]int `json:"nvlinks"` // [devices][devices]
}

// Name is a connection as nvidia-smi topo writes it: NV and the number of links, or else the path.
func (t Topology) Name(a, b int) string {
	if n := t.Links[a][b]; n > 0 {
		return fmt.Sprintf("NV%d", n)
	}
	return string(t.Paths[a][b])
}

// topology asks the driver about every pair. It is nil with fewer than two devices.
func (h *Host) topology(all []found, devices []Device) *Topology {
	n := len(all)
	if n < 2 {
		return nil
	}
	t := &Topology{Paths: make([][]Path, n), Links: make([][]int, n)}
	ends := make([]linkEnds, n)
	for i, f := range all {
		t.UUIDs = append(t.UUIDs, devices[i].UUID)
		t.Paths[i], t.Links[i] = make([]Path, n), make([]int, n)
		t.Paths[i][i] = PathSelf
		if f.handle != nil {
			ends[i] = newProbe(h, f.handle).linkEnds()
		}
	}
	for a := range all {
		for b := a + 1; b < n; b++ {
			t.Paths[a][b], t.Links[a][b] = PathUnknown, 0
			if devices[a].Lost == "" && devices[b].Lost == "" {
				t.Paths[a][b] = h.path(all[a].handle, all[b].handle)
				t.Links[a][b] = h.countLinks(all[a].handle, all[b].handle, ends[a], ends[b], devices[b].PCI.Bus.Value)
			}
			t.Paths[b][a], t.Links[b][a] = t.Paths[a][b], t.Links[a][b]
		}
	}
	return t
}

func (h *Host) path(a, b nvml.Device) Path {
	level := read(newProbe(h, a), "", "nvmlDeviceGetTopologyCommonAncestor",
		func() (nvml.GpuTopologyLevel, nvml.Return) {
			return a.GetTopologyCommonAncestor(b)
		})
	if path, ok := levels[level.Value]; ok && level.OK {
		return path
	}
	return PathUnknown
}

// countLinks counts the links between two devices. Two devices with links to switches are joined unless the driver
// denies it.
func (h *Host) countLinks(a, b nvml.Device, from, to linkEnds, busOfB string) int {
	if n := from.peers[busOfB]; n > 0 {
		return n
	}
	p2p := read(newProbe(h, a), "", "nvmlDeviceGetP2PStatus", func() (nvml.GpuP2PStatus, nvml.Return) {
		return a.GetP2PStatus(b, nvml.P2P_CAPS_INDEX_NVLINK)
	})
	if p2p.OK && p2p.Value != nvml.P2P_STATUS_OK {
		return 0
	}
	if n := min(from.switches, to.switches); n > 0 {
		return n
	}
	if p2p.OK && !from.known {
		return 1
	}
	return 0
}
