package device

import (
	"slices"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// ClockReason is one of NVML's reasons for clocks below their maximum.
type ClockReason struct {
	Bit  uint64
	Name string
}

// Reasons that indicate heat or power. The software power cap is not one of them, because a busy device normally runs
// at its power limit.
const (
	hwSlowdown   = "hw_slowdown" // heat or a power brake; one of the next two says which, where the device does
	hwThermal    = "hw_thermal_slowdown"
	hwPowerBrake = "hw_power_brake_slowdown"
	swThermal    = "sw_thermal_slowdown"
)

// ClockReasons lists all reasons (nvml.h, nvmlClocksEventReason).
var ClockReasons = []ClockReason{
	{nvml.ClocksEventReasonGpuIdle, "idle"},
	{nvml.ClocksEventReasonApplicationsClocksSetting, "applications_clocks_setting"},
	{nvml.ClocksEventReasonSwPowerCap, "sw_power_cap"},
	{nvml.ClocksThrottleReasonHwSlowdown, hwSlowdown},
	{nvml.ClocksEventReasonSyncBoost, "sync_boost"},
	{nvml.ClocksEventReasonSwThermalSlowdown, swThermal},
	{nvml.ClocksThrottleReasonHwThermalSlowdown, hwThermal},
	{nvml.ClocksThrottleReasonHwPowerBrakeSlowdown, hwPowerBrake},
	{nvml.ClocksEventReasonDisplayClockSetting, "display_clock_setting"},
}

// clockReasons names the bits of a mask, in the table's order.
func clockReasons(mask uint64) []string {
	names := []string{}
	for _, r := range ClockReasons {
		if mask&r.Bit != 0 {
			names = append(names, r.Name)
		}
	}
	return names
}

// throttled reports whether heat lowers the clocks and whether a power brake does.
func throttled(reasons []string) (thermal, power bool) {
	has := func(name string) bool { return slices.Contains(reasons, name) }
	power = has(hwPowerBrake)
	thermal = has(swThermal) || has(hwThermal) || has(hwSlowdown) && !power
	return thermal, power
}
