package devicetest

import (
	"maps"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// pciOf is the address of a device.
func pciOf(index int) nvml.PciInfo { return nvml.PciInfo{Bus: uint32(index + 1)} }

// link is one NVLink of a device: to another device, or to a switch (-1).
func (g *GPU) links() []int {
	var ends []int
	for _, peer := range slices.Sorted(maps.Keys(g.Peers)) {
		for range g.Peers[peer] {
			ends = append(ends, peer)
		}
	}
	for range g.Switches {
		ends = append(ends, -1)
	}
	return ends
}

func (g *GPU) makeConnections(d *mock.Device) {
	// on answers for a link that the device has.
	on := func(method string, link int) nvml.Return {
		if ret := g.verdict(method); ret != nvml.SUCCESS {
			return ret
		}
		if link >= len(g.links()) {
			return nvml.ERROR_INVALID_ARGUMENT
		}
		return nvml.SUCCESS
	}
	d.GetNvLinkStateFunc = func(link int) (state nvml.EnableState, ret nvml.Return) {
		g.library.Alter(func() {
			ret = on("GetNvLinkState", link)
			if ret == nvml.SUCCESS && link >= g.Down {
				state = nvml.FEATURE_ENABLED
			}
		})
		return state, ret
	}
	d.GetNvLinkRemoteDeviceTypeFunc = func(link int) (kind nvml.IntNvLinkDeviceType, ret nvml.Return) {
		g.library.Alter(func() {
			if ret = on("GetNvLinkRemoteDeviceType", link); ret == nvml.SUCCESS && g.links()[link] < 0 {
				kind = nvml.NVLINK_DEVICE_TYPE_SWITCH
			}
		})
		return kind, ret
	}
	d.GetNvLinkRemotePciInfoFunc = func(link int) (info nvml.PciInfo, ret nvml.Return) {
		g.library.Alter(func() {
			if ret = on("GetNvLinkRemotePciInfo", link); ret == nvml.SUCCESS {
				info = pciOf(g.links()[link])
			}
		})
		return info, ret
	}
	d.GetTopologyCommonAncestorFunc = func(other nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
		return answer(
			g, "GetTopologyCommonAncestor", func() nvml.GpuTopologyLevel { return g.level(g.library.of(other)) },
		)()
	}
	d.GetP2PStatusFunc = func(other nvml.Device, _ nvml.GpuP2PCapsIndex) (nvml.GpuP2PStatus, nvml.Return) {
		return answer(g, "GetP2PStatus", func() nvml.GpuP2PStatus {
			o := g.library.of(other)
			if g.Peers[o.index] > 0 || g.Switches > 0 && o.Switches > 0 {
				return nvml.P2P_STATUS_OK
			}
			return nvml.P2P_STATUS_NOT_SUPPORTED
		})()
	}
}

// level is the path to another device.
func (g *GPU) level(o *GPU) nvml.GpuTopologyLevel {
	if level, ok := g.Near[o.index]; ok {
		return level
	}
	if level, ok := o.Near[g.index]; ok {
		return level
	}
	if g.NUMA == o.NUMA {
		return nvml.TOPOLOGY_NODE
	}
	return nvml.TOPOLOGY_SYSTEM
}

// of finds the device of a handle.
func (l *Library) of(handle nvml.Device) *GPU {
	for _, g := range l.GPUs {
		if nvml.Device(g.device) == handle {
			return g
		}
	}
	return &GPU{index: -1}
}
