package device

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// links counts a device's NVLinks and those that are up.
func (p *probe) links() Links {
	var total, active int64
	for link := range nvml.NVLINK_MAX_LINKS {
		state := p.linkState(link)
		if !state.OK {
			continue
		}
		total++
		if state.Value {
			active++
		}
	}
	if total == 0 { // no link exists, or none can be asked for
		return Links{}
	}
	return Links{Total: Some(total), Active: Some(active)}
}

// linkState reports whether a link is up. There is no reading if the device has no such link.
func (p *probe) linkState(link int) Reading[bool] {
	return read(p, "nvlink", "nvmlDeviceGetNvLinkState", func() (bool, nvml.Return) {
		state, ret := p.dev.GetNvLinkState(link)
		if ret == nvml.ERROR_INVALID_ARGUMENT {
			ret = nvml.ERROR_NOT_SUPPORTED
		}
		return state == nvml.FEATURE_ENABLED, ret
	})
}

// linkEnds says where a device's active links lead.
type linkEnds struct {
	known    bool           // the device tells of its links
	peers    map[string]int // PCI address of another device → links to it
	switches int            // links to NVSwitches
}

func (p *probe) linkEnds() linkEnds {
	ends := linkEnds{peers: map[string]int{}}
	for link := range nvml.NVLINK_MAX_LINKS {
		state := p.linkState(link)
		ends.known = ends.known || state.OK
		if !state.Value {
			continue
		}
		kind := read(p, "nvlink", "nvmlDeviceGetNvLinkRemoteDeviceType",
			func() (nvml.IntNvLinkDeviceType, nvml.Return) {
				return p.dev.GetNvLinkRemoteDeviceType(link)
			})
		if kind.OK && kind.Value == nvml.NVLINK_DEVICE_TYPE_SWITCH {
			ends.switches++
			continue
		}
		remote := read(
			p, "nvlink", "nvmlDeviceGetNvLinkRemotePciInfo",
			func() (nvml.PciInfo, nvml.Return) { return p.dev.GetNvLinkRemotePciInfo(link) },
		)
		if remote.OK {
			ends.peers[busID(remote.Value)]++
		}
	}
	return ends
}
