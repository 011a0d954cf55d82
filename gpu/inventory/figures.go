package inventory

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// figure is one number, for each device that has it.
type figure struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
	read func(device.Status) device.Reading[float64]
}

// number makes a figure from a whole number, times a unit.
func number(name, help string, unit float64, read func(device.Status) device.Reading[int64]) figure {
	return figure{desc(name, help), prometheus.GaugeValue, func(s device.Status) device.Reading[float64] {
		r := read(s)
		return device.Reading[float64]{Value: float64(r.Value) * unit, OK: r.OK}
	}}
}

func percent(name, help string, read func(device.Status) device.Reading[int64]) figure {
	return figure{desc(name, help), prometheus.GaugeValue, func(s device.Status) device.Reading[float64] {
		r := read(s)
		return device.Reading[float64]{Value: float64(r.Value) / 100, OK: r.OK}
	}}
}

func count(name, help string, read func(device.Status) device.Reading[int64]) figure {
	f := number(name, help, 1, read)
	f.kind = prometheus.CounterValue
	return f
}

func flag(name, help string, read func(device.Status) device.Reading[bool]) figure {
	return figure{desc(name, help), prometheus.GaugeValue, func(s device.Status) device.Reading[float64] {
		r := read(s)
		return device.Reading[float64]{Value: boolValue(r.Value), OK: r.OK}
	}}
}

type (
	reading = device.Reading[int64]
	status  = device.Status
)

var figures = []figure{
	number("memory_total_bytes", "Memory.", 1, func(s status) reading { return s.Memory.Total }),
	number("memory_used_bytes", "Memory in use.", 1, func(s status) reading { return s.Memory.Used }),
	number("memory_free_bytes", "Memory that is free.", 1, func(s status) reading { return s.Memory.Free }),
	number(
		"memory_reserved_bytes", "Memory that the driver keeps for itself.", 1,
		func(s status) reading { return s.Memory.Reserved },
	),
	percent(
		"utilisation_ratio", "Share of the driver's last sampling period in which something ran.",
		func(s status) reading { return s.Utilisation.GPU },
	),
	percent(
		"memory_utilisation_ratio", "Share of it in which memory was read or written.",
		func(s status) reading { return s.Utilisation.Memory },
	),
	number("temperature_celsius", "Temperature.", 1, func(s status) reading { return s.Temperature.GPU }),
	{
		desc("power_watts", "Power drawn."), prometheus.GaugeValue,
		func(s status) device.Reading[float64] { return s.Power.Draw },
	},
	{
		desc("power_limit_watts", "Power that may be drawn."), prometheus.GaugeValue,
		func(s status) device.Reading[float64] { return s.Power.Limit },
	},
	{
		desc("energy_joules_total", "Energy used since the driver was loaded."), prometheus.CounterValue,
		func(s status) device.Reading[float64] { return s.Power.Energy },
	},
	number("sm_clock_hertz", "Clock of the processors.", 1e6, func(s status) reading { return s.Clocks.SM }),
	number("memory_clock_hertz", "Clock of the memory.", 1e6, func(s status) reading { return s.Clocks.Memory }),
	count(
		"ecc_corrected_total", "Corrected memory errors since the driver was loaded.",
		func(s status) reading { return s.ECC.Corrected },
	),
	count(
		"ecc_uncorrected_total", "Double-bit memory errors since the driver was loaded.",
		func(s status) reading { return s.ECC.Uncorrected },
	),
	count(
		"remapped_rows_corrected_total", "Memory rows replaced after single-bit errors.",
		func(s status) reading { return s.Rows.Corrected },
	),
	count(
		"remapped_rows_uncorrected_total", "Memory rows replaced after double-bit errors.",
		func(s status) reading { return s.Rows.Uncorrected },
	),
	flag(
		"row_remap_pending", "1 if a memory row is replaced at the next reset.",
		func(s status) device.Reading[bool] { return s.Rows.Pending },
	),
	flag(
		"row_remap_failed", "1 if a memory row could not be replaced.",
		func(s status) device.Reading[bool] { return s.Rows.Failed },
	),
	number("nvlinks", "NVLinks that the device has.", 1, func(s status) reading { return s.Links.Total }),
	number("nvlinks_active", "NVLinks that are up.", 1, func(s status) reading { return s.Links.Active }),
	number(
		"pcie_generation", "Generation of the PCIe connection now.", 1,
		func(s status) reading { return s.PCI.Generation },
	),
	number("pcie_lanes", "Lanes of the PCIe connection now.", 1, func(s status) reading { return s.PCI.Width }),
	number("processes", "Processes that compute on the device.", 1, func(s status) reading {
		return reading{Value: int64(len(s.Processes.Value)), OK: s.Processes.OK}
	}),
}
