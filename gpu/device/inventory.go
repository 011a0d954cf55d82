package device

import (
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// Inventory is the data that NVML reports about a host at one moment.
type Inventory struct {
	Driver  Driver   `json:"driver"`
	Devices []Device `json:"devices"` // by NVML's index, which is the order on the PCI bus
	// Topology is nil with fewer than two devices.
	Topology *Topology `json:"topology,omitempty"`
}

// Device is one GPU. A reading is null in JSON if the device does not support it.
type Device struct {
	Index       int             `json:"index"`
	UUID        string          `json:"uuid"` // "" of a device that was lost before it could be asked
	Name        string          `json:"name"`
	Capability  Reading[string] `json:"compute_capability"` // e.g. 9.0
	PCI         PCI             `json:"pci"`
	NUMA        Reading[int64]  `json:"numa_node"` // of the host's processors
	MIG         MIG             `json:"mig"`
	Memory      Memory          `json:"memory"`
	Utilisation Utilisation     `json:"utilisation"`
	Temperature Temperature     `json:"temperature"`
	Power       Power           `json:"power"`
	Clocks      Clocks          `json:"clocks"`
	ECC         ECC             `json:"ecc"`
	Rows        Rows            `json:"row_remap"`
	Links       Links           `json:"nvlink"`
	// Recovery is the action that the device needs according to the driver: none, reset, reboot, drain_p2p or
	// drain_and_reset.
	Recovery  Reading[string]    `json:"recovery_action"`
	Processes Reading[[]Process] `json:"processes"` // that compute on it
	// Lost says why the device could not be read (e.g. fallen off the bus), or is "".
	Lost string `json:"lost,omitempty"`
	// Faults holds the fields that could not be read for a reason other than missing support.
	Faults map[string]string `json:"faults,omitempty"`
}

// PCI describes where and how fast a device is attached.
type PCI struct {
	Bus           Reading[string] `json:"bus_id"` // domain:bus:device.function
	Generation    Reading[int64]  `json:"generation"`
	MaxGeneration Reading[int64]  `json:"max_generation"`
	Width         Reading[int64]  `json:"width"` // lanes
	MaxWidth      Reading[int64]  `json:"max_width"`
}

// MIG describes how a device is split into instances.
type MIG struct {
	Enabled   Reading[bool] `json:"enabled"`
	Instances []Instance    `json:"instances,omitempty"`
}

// Instance is a part of a device with its own memory and processors.
type Instance struct {
	UUID        string         `json:"uuid"`
	Name        string         `json:"name"`
	GPU         Reading[int64] `json:"gpu_instance"`
	Compute     Reading[int64] `json:"compute_instance"`
	MemoryTotal Reading[int64] `json:"memory_total_bytes"`
	MemoryUsed  Reading[int64] `json:"memory_used_bytes"`
}

// Memory is the device's memory. Reserved is the driver's own share; neither Free nor Used includes it.
type Memory struct {
	Total    Reading[int64] `json:"total_bytes"`
	Used     Reading[int64] `json:"used_bytes"`
	Free     Reading[int64] `json:"free_bytes"`
	Reserved Reading[int64] `json:"reserved_bytes"`
}

// Utilisation is the share of the driver's last sampling period in which work ran, in percent.
type Utilisation struct {
	GPU    Reading[int64] `json:"gpu_percent"`
	Memory Reading[int64] `json:"memory_percent"` // in which memory was read or written
}

// Temperature is in degrees Celsius.
type Temperature struct {
	GPU      Reading[int64] `json:"gpu_celsius"`
	Slowdown Reading[int64] `json:"slowdown_celsius"` // from here on clocks are lowered
	Shutdown Reading[int64] `json:"shutdown_celsius"`
}

// Power is in watts. Energy is in joules since the driver was loaded.
type Power struct {
	Draw   Reading[float64] `json:"draw_watts"`
	Limit  Reading[float64] `json:"limit_watts"`
	Energy Reading[float64] `json:"energy_joules"`
}

// Clocks are in MHz. Reasons say why they are below their maximum, by the names of ClockReasons.
type Clocks struct {
	SM        Reading[int64]    `json:"sm_mhz"`
	MaxSM     Reading[int64]    `json:"max_sm_mhz"`
	Memory    Reading[int64]    `json:"memory_mhz"`
	MaxMemory Reading[int64]    `json:"max_memory_mhz"`
	Reasons   Reading[[]string] `json:"reasons"`
}

// ECC counts memory errors: volatile errors since the driver was loaded, and aggregate errors over the device's life.
type ECC struct {
	Enabled              Reading[bool]  `json:"enabled"`
	Corrected            Reading[int64] `json:"corrected"`
	Uncorrected          Reading[int64] `json:"uncorrected"` // double-bit errors
	AggregateCorrected   Reading[int64] `json:"aggregate_corrected"`
	AggregateUncorrected Reading[int64] `json:"aggregate_uncorrected"`
}

// Rows counts the memory rows that the device has replaced, or pages on devices before Ampere.
type Rows struct {
	Corrected   Reading[int64] `json:"corrected"`   // replaced after single-bit errors
	Uncorrected Reading[int64] `json:"uncorrected"` // after double-bit errors
	Pending     Reading[bool]  `json:"pending"`     // one is replaced at the next reset
	Failed      Reading[bool]  `json:"failed"`      // one could not be replaced
	PagePending Reading[bool]  `json:"page_retirement_pending"`
}

// Links are a device's NVLinks.
type Links struct {
	Total  Reading[int64] `json:"total"`
	Active Reading[int64] `json:"active"`
}

// Process computes on a device. Memory is null if the driver does not report it.
type Process struct {
	PID    int            `json:"pid"`
	Name   string         `json:"name,omitempty"`
	Memory Reading[int64] `json:"memory_bytes"`
}

// Inventory reads every value of every device.
func (h *Host) Inventory() (Inventory, error) {
	found, err := h.find()
	if err != nil {
		return Inventory{}, err
	}
	inv := Inventory{Driver: h.Driver(), Devices: []Device{}}
	for _, f := range found {
		inv.Devices = append(inv.Devices, h.readFound(f))
	}
	inv.Topology = h.topology(found, inv.Devices)
	return inv, nil
}

// found is a device of the driver's list.
type found struct {
	index  int
	handle nvml.Device // nil if it is lost
	uuid   string
	lost   nvml.Return
}

// find lists the devices.
func (h *Host) find() ([]found, error) {
	n, ret := h.lib.DeviceGetCount()
	if ret != nvml.SUCCESS {
		return nil, fmt.Errorf("count devices: %w", ret)
	}
	var out []found
	for i := range n {
		f := found{index: i}
		f.handle, f.lost = h.lib.DeviceGetHandleByIndex(i)
		if f.lost == nvml.SUCCESS {
			f.uuid, f.lost = f.handle.GetUUID()
		}
		if f.lost != nvml.ERROR_NO_PERMISSION { // e.g. a device that the container was not given
			out = append(out, f)
		}
	}
	return out, nil
}

// readFound reads a device of the list, even if the device is lost.
func (h *Host) readFound(f found) Device {
	if f.lost != nvml.SUCCESS {
		return Device{Index: f.index, UUID: f.uuid, Lost: lostReason(f.lost)}
	}
	return h.read(f.index, f.uuid, f.handle)
}

// resetRequired is the one loss that a reset surely repairs.
const resetRequired = "reset required"

func lostReason(ret nvml.Return) string {
	switch ret {
	case nvml.ERROR_RESET_REQUIRED:
		return resetRequired
	case nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT: // of a UUID that was found before
		return "no longer listed by the driver"
	case nvml.ERROR_GPU_IS_LOST:
		return "fallen off the bus"
	}
	return "cannot be asked: " + nvml.Return.Error(ret)
}
