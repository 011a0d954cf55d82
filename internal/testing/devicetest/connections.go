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

// linked makes a mock's function out of a figure of a link, given its number and its other end.
func linked[T any](g *GPU, method string, figure func(link, end int) T) func(int) (T, nvml.Return) {
	return func(link int) (value T, ret nvml.Return) {
		g.library.Alter(func() {
			ret = g.verdict(method)
			ends := g.links()
			if ret == nvml.SUCCESS && link >= len(ends) {
				ret = nvml.ERROR_INVALID_ARGUMENT
			}
			if ret == nvml.SUCCESS {
				value = figure(link, ends[link])
			}
		})
		return value, ret
	}
}

func (g *GPU) makeConnections(d *mock.Device) {
	d.GetNvLinkStateFunc = linked(g, "GetNvLinkState", func(link, _ int) nvml.EnableState {
		if link >= g.Down {
			return nvml.FEATURE_ENABLED
		}
		return nvml.FEATURE_DISABLED
	})
	d.GetNvLinkRemoteDeviceTypeFunc = linked(g, "GetNvLinkRemoteDeviceType",
		func(_, end int) (kind nvml.IntNvLinkDeviceType) {
			if end < 0 {
				kind = nvml.NVLINK_DEVICE_TYPE_SWITCH
			}
			return kind
		})
	d.GetNvLinkRemotePciInfoFunc = linked(g, "GetNvLinkRemotePciInfo",
		func(_, end int) nvml.PciInfo { return pciOf(end) })
	d.GetTopologyCommonAncestorFunc = func(other nvml.Device) (nvml.GpuTopologyLevel, nvml.Return) {
		level := func() nvml.GpuTopologyLevel { return g.level(g.library.of(other)) }
		return answer(g, "GetTopologyCommonAncestor", level)()
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
