package device

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// read reads every value of one device.
func (h *Host) read(index int, uuid string, dev nvml.Device) Device {
	p := newProbe(h, dev)
	d := Device{Index: index, UUID: uuid, Name: read(p, "name", "nvmlDeviceGetName", dev.GetName).Or("")}
	d.Capability = read(p, "compute_capability", "nvmlDeviceGetCudaComputeCapability", func() (string, nvml.Return) {
		major, minor, ret := dev.GetCudaComputeCapability()
		return fmt.Sprintf("%d.%d", major, minor), ret
	})
	d.PCI = p.pci()
	d.NUMA = p.numa(d.PCI.Bus)
	d.MIG = p.mig()
	d.Memory = p.memory()
	d.Utilisation = p.utilisation()
	d.Temperature = p.temperature()
	d.Power = p.power()
	d.Clocks = p.clocks()
	d.ECC = p.ecc()
	d.Rows = p.rows()
	d.Links = p.links()
	d.Recovery = p.recovery()
	d.Processes = p.processes()
	if p.lost != nvml.SUCCESS {
		d.Lost = lostReason(p.lost)
	}
	if len(p.faults) > 0 {
		d.Faults = p.faults
	}
	return d
}

func (p *probe) pci() PCI {
	return PCI{
		Bus: read(p, "pci.bus_id", "nvmlDeviceGetPciInfo", func() (string, nvml.Return) {
			info, ret := p.dev.GetPciInfo()
			return busID(info), ret
		}),
		Generation: number(
			p, "pci.generation", "nvmlDeviceGetCurrPcieLinkGeneration", p.dev.GetCurrPcieLinkGeneration,
		),
		MaxGeneration: number(
			p, "pci.max_generation", "nvmlDeviceGetMaxPcieLinkGeneration", p.dev.GetMaxPcieLinkGeneration,
		),
		Width:    number(p, "pci.width", "nvmlDeviceGetCurrPcieLinkWidth", p.dev.GetCurrPcieLinkWidth),
		MaxWidth: number(p, "pci.max_width", "nvmlDeviceGetMaxPcieLinkWidth", p.dev.GetMaxPcieLinkWidth),
	}
}

// busID writes a PCI address as the kernel does; a GPU is function 0.
func busID(info nvml.PciInfo) string {
	return fmt.Sprintf("%04x:%02x:%02x.0", info.Domain, info.Bus, info.Device)
}

// numa is the node whose memory is nearest to the device, by NVML or else by the kernel.
func (p *probe) numa(bus Reading[string]) Reading[int64] {
	const nodes = 1024 // the kernel's own limit
	set := read(p, "numa_node", "nvmlDeviceGetMemoryAffinity", func() ([]uint, nvml.Return) {
		return p.dev.GetMemoryAffinity(nodes, nvml.AFFINITY_SCOPE_NODE)
	})
	for word, bits := range set.Value {
		for bit := range strconv.IntSize {
			if bits&(1<<bit) != 0 {
				return Some(int64(word*strconv.IntSize + bit))
			}
		}
	}
	if !bus.OK {
		return Reading[int64]{}
	}
	text, err := os.ReadFile(filepath.Join(p.host.sysfs, "bus/pci/devices", bus.Value, "numa_node"))
	if err != nil {
		return Reading[int64]{}
	}
	node, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil || node < 0 { // -1: the machine has one node and does not say so
		return Reading[int64]{}
	}
	return Some(int64(node))
}

// memory prefers the second version of NVML's call, which reports the driver's share separately.
func (p *probe) memory() Memory {
	bytes := func(v uint64) Reading[int64] { return Some(int64(v)) }
	if m := read(p, "memory", "nvmlDeviceGetMemoryInfo_v2", p.dev.GetMemoryInfo_v2); m.OK {
		return Memory{bytes(m.Value.Total), bytes(m.Value.Used), bytes(m.Value.Free), bytes(m.Value.Reserved)}
	}
	if m := read(p, "memory", "nvmlDeviceGetMemoryInfo", p.dev.GetMemoryInfo); m.OK {
		return Memory{Total: bytes(m.Value.Total), Used: bytes(m.Value.Used), Free: bytes(m.Value.Free)}
	}
	return Memory{}
}

func (p *probe) utilisation() Utilisation {
	u := read(p, "utilisation", "nvmlDeviceGetUtilizationRates", p.dev.GetUtilizationRates)
	return Utilisation{
		GPU:    then(u, func(u nvml.Utilization) int64 { return int64(u.Gpu) }),
		Memory: then(u, func(u nvml.Utilization) int64 { return int64(u.Memory) }),
	}
}

func (p *probe) temperature() Temperature {
	threshold := func(field string, which nvml.TemperatureThresholds) Reading[int64] {
		return number(
			p, field, "nvmlDeviceGetTemperatureThreshold",
			func() (uint32, nvml.Return) { return p.dev.GetTemperatureThreshold(which) },
		)
	}
	return Temperature{
		GPU: number(
			p, "temperature.gpu", "nvmlDeviceGetTemperature",
			func() (uint32, nvml.Return) { return p.dev.GetTemperature(nvml.TEMPERATURE_GPU) },
		),
		Slowdown: threshold("temperature.slowdown", nvml.TEMPERATURE_THRESHOLD_SLOWDOWN),
		Shutdown: threshold("temperature.shutdown", nvml.TEMPERATURE_THRESHOLD_SHUTDOWN),
	}
}

func (p *probe) power() Power {
	thousandth := func(v int64) float64 { return float64(v) / 1000 } // NVML counts mW and mJ
	return Power{
		Draw: then(number(p, "power.draw", "nvmlDeviceGetPowerUsage", p.dev.GetPowerUsage), thousandth),
		Limit: then(
			number(p, "power.limit", "nvmlDeviceGetEnforcedPowerLimit", p.dev.GetEnforcedPowerLimit), thousandth,
		),
		Energy: then(
			number(p, "power.energy", "nvmlDeviceGetTotalEnergyConsumption", p.dev.GetTotalEnergyConsumption),
			thousandth,
		),
	}
}

func (p *probe) clocks() Clocks {
	now := func(field string, which nvml.ClockType) Reading[int64] {
		return number(
			p, field, "nvmlDeviceGetClockInfo", func() (uint32, nvml.Return) { return p.dev.GetClockInfo(which) },
		)
	}
	most := func(field string, which nvml.ClockType) Reading[int64] {
		return number(
			p, field, "nvmlDeviceGetMaxClockInfo", func() (uint32, nvml.Return) { return p.dev.GetMaxClockInfo(which) },
		)
	}
	reasons := read(p, "clocks.reasons", "nvmlDeviceGetCurrentClocksEventReasons", p.dev.GetCurrentClocksEventReasons)
	if !reasons.OK { // the name before driver 535
		reasons = read(
			p, "clocks.reasons", "nvmlDeviceGetCurrentClocksThrottleReasons", p.dev.GetCurrentClocksThrottleReasons,
		)
	}
	return Clocks{
		SM: now("clocks.sm", nvml.CLOCK_SM), MaxSM: most("clocks.max_sm", nvml.CLOCK_SM),
		Memory: now("clocks.memory", nvml.CLOCK_MEM), MaxMemory: most("clocks.max_memory", nvml.CLOCK_MEM),
		Reasons: then(reasons, clockReasons),
	}
}

func (p *probe) ecc() ECC {
	count := func(field string, what nvml.MemoryErrorType, since nvml.EccCounterType) Reading[int64] {
		return number(
			p, field, "nvmlDeviceGetTotalEccErrors",
			func() (uint64, nvml.Return) { return p.dev.GetTotalEccErrors(what, since) },
		)
	}
	return ECC{
		Enabled: read(p, "ecc.enabled", "nvmlDeviceGetEccMode", func() (bool, nvml.Return) {
			current, _, ret := p.dev.GetEccMode()
			return current == nvml.FEATURE_ENABLED, ret
		}),
		Corrected:          count("ecc.corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.VOLATILE_ECC),
		Uncorrected:        count("ecc.uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.VOLATILE_ECC),
		AggregateCorrected: count("ecc.aggregate_corrected", nvml.MEMORY_ERROR_TYPE_CORRECTED, nvml.AGGREGATE_ECC),
		AggregateUncorrected: count(
			"ecc.aggregate_uncorrected", nvml.MEMORY_ERROR_TYPE_UNCORRECTED, nvml.AGGREGATE_ECC,
		),
	}
}

func (p *probe) rows() Rows {
	type remapped struct {
		corrected, uncorrected int
		pending, failed        bool
	}
	r := read(p, "row_remap", "nvmlDeviceGetRemappedRows", func() (remapped, nvml.Return) {
		corrected, uncorrected, pending, failed, ret := p.dev.GetRemappedRows()
		return remapped{corrected, uncorrected, pending, failed}, ret
	})
	return Rows{
		Corrected:   then(r, func(r remapped) int64 { return int64(r.corrected) }),
		Uncorrected: then(r, func(r remapped) int64 { return int64(r.uncorrected) }),
		Pending:     then(r, func(r remapped) bool { return r.pending }),
		Failed:      then(r, func(r remapped) bool { return r.failed }),
		PagePending: read(p, "row_remap.page_retirement_pending", "nvmlDeviceGetRetiredPagesPendingStatus",
			func() (bool, nvml.Return) {
				pending, ret := p.dev.GetRetiredPagesPendingStatus()
				return pending == nvml.FEATURE_ENABLED, ret
			}),
	}
}

var recoveryActions = map[nvml.DeviceGpuRecoveryAction]string{
	nvml.GPU_RECOVERY_ACTION_NONE:            "none",
	nvml.GPU_RECOVERY_ACTION_GPU_RESET:       "reset",
	nvml.GPU_RECOVERY_ACTION_NODE_REBOOT:     "reboot",
	nvml.GPU_RECOVERY_ACTION_DRAIN_P2P:       "drain_p2p",
	nvml.GPU_RECOVERY_ACTION_DRAIN_AND_RESET: "drain_and_reset",
}

// recovery reads a field that drivers from 565 on support. An Xid 154 announces a change of it.
func (p *probe) recovery() Reading[string] {
	return read(p, "recovery_action", "nvmlDeviceGetFieldValues", func() (string, nvml.Return) {
		values := []nvml.FieldValue{{FieldId: nvml.FI_DEV_GET_GPU_RECOVERY_ACTION}}
		if ret := p.dev.GetFieldValues(values); ret != nvml.SUCCESS {
			return "", ret
		}
		if ret := nvml.Return(values[0].NvmlReturn); ret == nvml.ERROR_INVALID_ARGUMENT { // an older driver
			return "", nvml.ERROR_NOT_SUPPORTED
		} else if ret != nvml.SUCCESS {
			return "", ret
		}
		action := nvml.DeviceGpuRecoveryAction(binary.NativeEndian.Uint32(values[0].Value[:4]))
		if name, ok := recoveryActions[action]; ok {
			return name, nvml.SUCCESS
		}
		return strconv.Itoa(int(action)), nvml.SUCCESS
	})
}

func (p *probe) processes() Reading[[]Process] {
	return then(read(
		p, "processes", "nvmlDeviceGetComputeRunningProcesses", p.dev.GetComputeRunningProcesses,
	), func(infos []nvml.ProcessInfo) []Process {
		out := []Process{}
		for _, i := range infos {
			process := Process{PID: int(i.Pid)}
			if i.UsedGpuMemory != ^uint64(0) { // not available
				process.Memory = Some(int64(i.UsedGpuMemory))
			}
			if p.host.has("nvmlSystemGetProcessName") {
				if name, ret := p.host.lib.SystemGetProcessName(process.PID); ret == nvml.SUCCESS {
					process.Name = name
				}
			}
			out = append(out, process)
		}
		return out
	})
}
