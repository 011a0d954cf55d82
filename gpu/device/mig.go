package device

import "github.com/NVIDIA/go-nvml/pkg/nvml"

// mig reads how a device is split.
func (p *probe) mig() MIG {
	m := MIG{Enabled: read(p, "mig.enabled", "nvmlDeviceGetMigMode", func() (bool, nvml.Return) {
		current, _, ret := p.dev.GetMigMode()
		return current == nvml.DEVICE_MIG_ENABLE, ret
	})}
	if !m.Enabled.Value {
		return m
	}
	most := number(p, "mig.instances", "nvmlDeviceGetMaxMigDeviceCount", p.dev.GetMaxMigDeviceCount)
	for i := range int(most.Value) {
		handle, ret := p.dev.GetMigDeviceHandleByIndex(i)
		if ret != nvml.SUCCESS { // an instance that was not made
			continue
		}
		m.Instances = append(m.Instances, p.instance(handle))
	}
	return m
}

func (p *probe) instance(handle nvml.Device) Instance {
	part := &probe{host: p.host, dev: handle, faults: p.faults}
	memory := part.memory()
	return Instance{
		UUID: read(part, "mig.uuid", "nvmlDeviceGetUUID", handle.GetUUID).Or(""),
		Name: read(part, "mig.name", "nvmlDeviceGetName", handle.GetName).Or(""),
		GPU:  number(part, "mig.gpu_instance", "nvmlDeviceGetGpuInstanceId", handle.GetGpuInstanceId),
		Compute: number(
			part, "mig.compute_instance", "nvmlDeviceGetComputeInstanceId", handle.GetComputeInstanceId,
		),
		MemoryTotal: memory.Total, MemoryUsed: memory.Used,
	}
}
