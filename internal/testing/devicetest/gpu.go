package devicetest

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"reflect"
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
	"github.com/NVIDIA/go-nvml/pkg/nvml/mock"
)

// GiB is a unit of memory.
const GiB = 1 << 30

// GPU describes a device. Its zero value is a healthy H200 with all of its memory free.
type GPU struct {
	UUID  string // default GPU-0000000<index>
	Name  string
	Total uint64 // bytes; default 141 GiB
	Used  uint64
	NUMA  int
	// Near is the path to the devices of these indices; others are across NUMA nodes, or in one node if theirs is the
	// same.
	Near map[int]nvml.GpuTopologyLevel
	// Peers are the active NVLinks to the devices of these indices, Switches those to NVSwitches.
	Peers    map[int]int
	Switches int
	// Down is how many of the links are down.
	Down int

	Reasons                   uint64 // for low clocks, nvml.ClocksEventReason…
	Uncorrected               uint64
	RowPending                bool
	Recovery                  nvml.DeviceGpuRecoveryAction
	Processes                 []nvml.ProcessInfo
	MIG                       []Slice
	Lost, ResetRequired, Gone bool            // every call fails; calls ask for a reset; it has no handle any more
	Unsupported               map[string]bool // methods of nvml.Device that it has no answer to
	Unknown                   map[string]bool // methods, or GetHandle, that fail with ERROR_UNKNOWN
	Block                     chan struct{}   // if set, reading the name waits for it
	device                    *mock.Device
	library                   *Library
	index                     int
}

// Slice is a MIG instance.
type Slice struct {
	UUID  string
	Name  string
	Total uint64
}

// verdict is the code that a call of the method returns in place of an answer.
func (g *GPU) verdict(method string) nvml.Return {
	switch {
	case g.Lost || g.Gone:
		return nvml.ERROR_GPU_IS_LOST
	case g.ResetRequired:
		return nvml.ERROR_RESET_REQUIRED
	case g.Unsupported[method]:
		return nvml.ERROR_NOT_SUPPORTED
	case g.Unknown[method]:
		return nvml.ERROR_UNKNOWN
	}
	return nvml.SUCCESS
}

// answer makes a mock's function out of a figure.
func answer[T any](g *GPU, method string, figure func() T) func() (T, nvml.Return) {
	return func() (T, nvml.Return) {
		g.library.mu.Lock()
		defer g.library.mu.Unlock()
		if ret := g.verdict(method); ret != nvml.SUCCESS {
			return *new(T), ret
		}
		return figure(), nvml.SUCCESS
	}
}

// about is answer for functions of one argument.
func about[A, T any](g *GPU, method string, figure func(A) T) func(A) (T, nvml.Return) {
	return func(a A) (T, nvml.Return) { return answer(g, method, func() T { return figure(a) })() }
}

// make fills the mock. What is not written down is not supported.
func (g *GPU) make(l *Library, index int) {
	g.library, g.index = l, index
	g.UUID = cmp.Or(g.UUID, fmt.Sprintf("GPU-%08d", index))
	g.Name, g.Total = cmp.Or(g.Name, "NVIDIA H200"), cmp.Or(g.Total, 141*GiB)
	d := &mock.Device{}
	g.device = d
	d.GetUUIDFunc = answer(g, "GetUUID", func() string { return g.UUID })
	name := answer(g, "GetName", func() string { return g.Name })
	d.GetNameFunc = func() (string, nvml.Return) {
		var block chan struct{}
		l.Alter(func() { block = g.Block })
		if block != nil {
			<-block
		}
		return name()
	}
	d.GetCudaComputeCapabilityFunc = func() (int, int, nvml.Return) {
		_, ret := answer(g, "GetCudaComputeCapability", func() int { return 0 })()
		return 9, 0, ret
	}
	d.GetIndexFunc = answer(g, "GetIndex", func() int { return index })
	d.GetPciInfoFunc = answer(g, "GetPciInfo", func() nvml.PciInfo { return pciOf(index) })
	d.GetCurrPcieLinkGenerationFunc = answer(g, "GetCurrPcieLinkGeneration", func() int { return 5 })
	d.GetMaxPcieLinkGenerationFunc = answer(g, "GetMaxPcieLinkGeneration", func() int { return 5 })
	d.GetCurrPcieLinkWidthFunc = answer(g, "GetCurrPcieLinkWidth", func() int { return 16 })
	d.GetMaxPcieLinkWidthFunc = answer(g, "GetMaxPcieLinkWidth", func() int { return 16 })
	d.GetMemoryAffinityFunc = func(int, nvml.AffinityScope) ([]uint, nvml.Return) {
		return answer(g, "GetMemoryAffinity", func() []uint { return []uint{1 << g.NUMA, 0} })()
	}
	g.makeFigures(d)
	g.makeErrors(d)
	g.makeConnections(d)
	g.makeSlices(d)
	d.GetSupportedEventTypesFunc = answer(g, "GetSupportedEventTypes", func() uint64 {
		return nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeSingleBitEccError |
			nvml.EventTypeGpuRecoveryAction
	})
	d.RegisterEventsFunc = func(uint64, nvml.EventSet) nvml.Return {
		_, ret := answer(g, "RegisterEvents", func() int { return 0 })()
		return ret
	}
	Rest(d)
}

func (g *GPU) makeFigures(d *mock.Device) {
	d.GetMemoryInfo_v2Func = answer(g, "GetMemoryInfo_v2", func() nvml.Memory_v2 {
		return nvml.Memory_v2{Total: g.Total, Used: g.Used, Free: g.Total - g.Used, Reserved: GiB / 2}
	})
	d.GetMemoryInfoFunc = answer(g, "GetMemoryInfo", func() nvml.Memory {
		return nvml.Memory{Total: g.Total, Used: g.Used, Free: g.Total - g.Used}
	})
	load := nvml.Utilization{Gpu: 93, Memory: 41}
	d.GetUtilizationRatesFunc = answer(g, "GetUtilizationRates", func() nvml.Utilization { return load })
	d.GetTemperatureFunc = about(g, "GetTemperature", func(nvml.TemperatureSensors) uint32 { return 61 })
	d.GetTemperatureThresholdFunc = about(g, "GetTemperatureThreshold", func(which nvml.TemperatureThresholds) uint32 {
		if which == nvml.TEMPERATURE_THRESHOLD_SHUTDOWN {
			return 92
		}
		return 89
	})
	d.GetPowerUsageFunc = answer(g, "GetPowerUsage", func() uint32 { return 655_250 })
	d.GetEnforcedPowerLimitFunc = answer(g, "GetEnforcedPowerLimit", func() uint32 { return 700_000 })
	d.GetTotalEnergyConsumptionFunc = answer(g, "GetTotalEnergyConsumption", func() uint64 { return 12_345_678 })
	d.GetClockInfoFunc = about(g, "GetClockInfo", clock(1755, 3201))
	d.GetMaxClockInfoFunc = about(g, "GetMaxClockInfo", clock(1980, 3201))
	reasons := func() uint64 { return g.Reasons }
	d.GetCurrentClocksEventReasonsFunc = answer(g, "GetCurrentClocksEventReasons", reasons)
	d.GetCurrentClocksThrottleReasonsFunc = answer(g, "GetCurrentClocksThrottleReasons", reasons)
	processes := func() []nvml.ProcessInfo { return slices.Clone(g.Processes) }
	d.GetComputeRunningProcessesFunc = answer(g, "GetComputeRunningProcesses", processes)
}

func clock(sm, memory uint32) func(nvml.ClockType) uint32 {
	return func(which nvml.ClockType) uint32 {
		if which == nvml.CLOCK_MEM {
			return memory
		}
		return sm
	}
}

func (g *GPU) makeErrors(d *mock.Device) {
	d.GetEccModeFunc = func() (nvml.EnableState, nvml.EnableState, nvml.Return) {
		on, ret := answer(g, "GetEccMode", func() nvml.EnableState { return nvml.FEATURE_ENABLED })()
		return on, on, ret
	}
	d.GetTotalEccErrorsFunc = func(what nvml.MemoryErrorType, _ nvml.EccCounterType) (uint64, nvml.Return) {
		return answer(g, "GetTotalEccErrors", func() uint64 {
			if what == nvml.MEMORY_ERROR_TYPE_UNCORRECTED {
				return g.Uncorrected
			}
			return 3
		})()
	}
	d.GetRemappedRowsFunc = func() (int, int, bool, bool, nvml.Return) {
		pending, ret := answer(g, "GetRemappedRows", func() bool { return g.RowPending })()
		return 1, 0, pending, false, ret
	}
	d.GetFieldValuesFunc = func(values []nvml.FieldValue) nvml.Return {
		_, ret := answer(g, "GetFieldValues", func() int {
			for i := range values {
				binary.NativeEndian.PutUint32(values[i].Value[:4], uint32(g.Recovery))
			}
			return 0
		})()
		return ret
	}
}

func (g *GPU) makeSlices(d *mock.Device) {
	d.GetMigModeFunc = func() (int, int, nvml.Return) {
		mode, ret := answer(g, "GetMigMode", func() int { return min(len(g.MIG), nvml.DEVICE_MIG_ENABLE) })()
		return mode, mode, ret
	}
	d.GetMaxMigDeviceCountFunc = answer(g, "GetMaxMigDeviceCount", func() int { return 7 })
	d.GetMigDeviceHandleByIndexFunc = func(i int) (nvml.Device, nvml.Return) {
		if i >= len(g.MIG) {
			return nil, nvml.ERROR_NOT_FOUND
		}
		slice := g.MIG[i]
		part := &mock.Device{}
		part.GetUUIDFunc = answer(g, "GetUUID", func() string { return slice.UUID })
		part.GetNameFunc = answer(g, "GetName", func() string { return slice.Name })
		part.GetGpuInstanceIdFunc = answer(g, "GetGpuInstanceId", func() int { return i + 1 })
		part.GetComputeInstanceIdFunc = answer(g, "GetComputeInstanceId", func() int { return 0 })
		part.GetMemoryInfo_v2Func = answer(g, "GetMemoryInfo_v2", func() nvml.Memory_v2 {
			return nvml.Memory_v2{Total: slice.Total, Free: slice.Total}
		})
		Rest(part)
		return part, nvml.SUCCESS
	}
}

// Count returns a function that counts the calls of the methods so far.
func (g *GPU) Count(methods ...string) func() int {
	return func() int {
		n := 0
		for _, m := range methods {
			calls := reflect.ValueOf(g.device).MethodByName(m + "Calls")
			n += calls.Call(nil)[0].Len()
		}
		return n
	}
}

// Run makes a process compute on the device. Call it before the library is in use.
func (g *GPU) Run(pid int, memory uint64) {
	g.Processes = append(g.Processes, nvml.ProcessInfo{Pid: uint32(pid), UsedGpuMemory: memory})
}
