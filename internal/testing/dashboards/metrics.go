package dashboards

import (
	"maps"
	"regexp"
	"slices"
)

// unshown gives the reason why a metric of the program is in no panel.
var unshown = map[string]string{
	"ropewalk_run_info":                  "its labels are the choice of runs of the page about one run",
	"ropewalk_run_parked":                "only parked runs have it, and RopewalkRunParked shows its labels",
	"ropewalk_monitor_up":                "RopewalkMonitorDown reads it, and a panel shows for how long it was not 1",
	"ropewalk_gpu_info":                  "its labels describe the device, and its value is always 1",
	"ropewalk_gpu_reason":                "only unhealthy devices have it: RopewalkGPUUnhealthy shows its labels",
	"ropewalk_gpu_devices":               "Device health has a line for each of them",
	"ropewalk_gpu_event_faults_total":    "polls of the devices go on meanwhile (docs/gpu.md)",
	"ropewalk_gpu_memory_free_bytes":     "it is the memory less what is in use",
	"ropewalk_gpu_memory_reserved_bytes": "the driver decides it, and it is part of the memory in use",
	"ropewalk_gpu_energy_joules_total":   "Device power is its rate",
	"ropewalk_gpu_pcie_generation":       "it is a property of the host that `ropewalk gpu` shows",
	"ropewalk_gpu_pcie_lanes":            "likewise",
}

// series are the names that Prometheus gives a metric's time series; for a histogram these are several.
var series = regexp.MustCompile(`\bropewalk_[a-z0-9_]+?(_bucket|_sum|_count)?\b`)

// Metrics returns the names of the program's metrics in a text, such as an expression or the names of series, each
// once, in order.
func Metrics(text string) []string {
	found := map[string]bool{}
	for _, m := range series.FindAllStringSubmatch(text, -1) {
		found[m[0][:len(m[0])-len(m[1])]] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// Shown reports whether a panel shows a metric, or why none needs to. A metric of which neither is true is missing.
func Shown(metric string) (shown bool, unless string) {
	for _, d := range All() {
		for _, p := range d.Panels {
			for _, q := range p.Queries {
				if slices.Contains(Metrics(q.Expr), metric) {
					return true, ""
				}
			}
		}
	}
	return false, unshown[metric]
}
