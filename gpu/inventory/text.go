package inventory

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
)

// WriteText writes the report as tables.
func (r Report) WriteText(out io.Writer) error {
	if r.Driver == nil {
		_, err := fmt.Fprintf(out, "%s: the CPU engine is chosen\n", r.NoDriver)
		return err
	}
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "driver %s, NVML %s, CUDA up to %s\n", cmp.Or(r.Driver.Version, "unknown"),
		cmp.Or(r.Driver.NVML, "unknown"), cmp.Or(r.Driver.CUDA, "unknown"))
	if len(r.Devices) > 0 {
		writeReadings(w, r.Devices)
		writeParts(w, r.Devices)
		writeProcesses(w, r.Devices)
		writeTopology(w, r)
	}
	fmt.Fprintf(w, "\nengine %s: %s\n", r.Engine.Kind, r.Engine.Why)
	if err := w.Flush(); err != nil {
		return fmt.Errorf("print table: %w", err)
	}
	return nil
}

func writeReadings(w io.Writer, all []Device) {
	fmt.Fprintln(w, "\ngpu\tname\tstate\tlease\tmemory\tutilisation\ttemperature\tpower\tSM clock\tmemory clock")
	for _, d := range all {
		if d.Lost != "" {
			fmt.Fprintf(w, "%d\t-\t%s%s\n", d.Index, d.Health.State, strings.Repeat("\t-", 7))
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Index, d.Name, d.Health.State, leaseCell(d.Lease),
			pair(d.Memory.Used, d.Memory.Total, "%.1f / %.1f GiB", 1<<30), formatReading(d.Utilisation.GPU, "%d %%"),
			formatReading(d.Temperature.GPU, "%d °C"),
			watts(d.Power), pair(d.Clocks.SM, d.Clocks.MaxSM, "%.0f / %.0f MHz", 1),
			pair(d.Clocks.Memory, d.Clocks.MaxMemory, "%.0f / %.0f MHz", 1))
	}
}

func writeParts(w io.Writer, all []Device) {
	fmt.Fprintln(w, "\ngpu\tuuid\tPCIe\tNUMA\tMIG\tECC\tdouble-bit errors\trows replaced\tNVLinks\tlow clocks")
	for _, d := range all {
		if d.Lost != "" {
			fmt.Fprintf(w, "%d%s\n", d.Index, strings.Repeat("\t-", 9))
			continue
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Index, d.UUID, pcie(d.PCI), d.NUMA, migCell(d.MIG),
			onOff(d.ECC.Enabled),
			d.ECC.Uncorrected, rowsCell(d.Rows), pair(d.Links.Active, d.Links.Total, "%.0f / %.0f", 1),
			reasonsCell(d.Clocks.Reasons))
	}
	for _, d := range all {
		for _, r := range d.Health.Reasons {
			fmt.Fprintf(w, "gpu %d, %s by %s\n", d.Index, r.State, r)
		}
		if d.Lease.Mark != nil {
			fmt.Fprintf(w, "gpu %d is marked as failed (%s); after a reset: ropewalk gpu readmit %d\n", d.Index,
				d.Lease.Mark, d.Index)
		}
		for _, field := range slices.Sorted(maps.Keys(d.Faults)) {
			fmt.Fprintf(w, "gpu %d: %s could not be read: %s\n", d.Index, field, d.Faults[field])
		}
		for _, i := range d.MIG.Instances {
			fmt.Fprintf(w, "gpu %d has the instance %s (%s), %s\n", d.Index, i.UUID, i.Name,
				pair(i.MemoryUsed, i.MemoryTotal, "%.1f / %.1f GiB", 1<<30))
		}
	}
}

func writeProcesses(w io.Writer, all []Device) {
	first := true
	for _, d := range all {
		for _, p := range d.Processes.Value {
			if first {
				fmt.Fprintln(w, "\ngpu\tprocess\tname\tmemory")
				first = false
			}
			memory := "not supported"
			if p.Memory.OK {
				memory = fmt.Sprintf("%.1f GiB", float64(p.Memory.Value)/(1<<30))
			}
			fmt.Fprintf(w, "%d\t%d\t%s\t%s\n", d.Index, p.PID, p.Name, memory)
		}
	}
}

func writeTopology(w io.Writer, r Report) {
	if r.Topology == nil {
		return
	}
	fmt.Fprint(w, "\nconnected")
	for _, d := range r.Devices {
		fmt.Fprintf(w, "\t%d", d.Index)
	}
	fmt.Fprintln(w)
	for a, d := range r.Devices {
		fmt.Fprintf(w, "%d", d.Index)
		for b := range r.Devices {
			fmt.Fprintf(w, "\t%s", r.Topology.Name(a, b))
		}
		fmt.Fprintln(w)
	}
}

func formatReading(r device.Reading[int64], format string) string {
	if !r.OK {
		return r.String()
	}
	return fmt.Sprintf(format, r.Value)
}

// pair writes two readings in a unit, or that there are none.
func pair(a, b device.Reading[int64], format string, unit float64) string {
	if !a.OK || !b.OK {
		return formatReading(a, "%d")
	}
	return fmt.Sprintf(format, float64(a.Value)/unit, float64(b.Value)/unit)
}

func watts(p device.Power) string {
	if !p.Draw.OK {
		return p.Draw.String()
	}
	if !p.Limit.OK {
		return fmt.Sprintf("%.0f W", p.Draw.Value)
	}
	return fmt.Sprintf("%.0f / %.0f W", p.Draw.Value, p.Limit.Value)
}

func pcie(p device.PCI) string {
	if !p.Generation.OK || !p.Width.OK {
		return p.Bus.String()
	}
	return fmt.Sprintf("%s gen %d x%d", p.Bus, p.Generation.Value, p.Width.Value)
}

func onOff(r device.Reading[bool]) string {
	switch {
	case !r.OK:
		return r.String()
	case r.Value:
		return "on"
	}
	return "off"
}

func migCell(m device.MIG) string {
	if m.Enabled.Value {
		return fmt.Sprintf("%d instances", len(m.Instances))
	}
	return onOff(m.Enabled)
}

func rowsCell(r device.Rows) string {
	if !r.Corrected.OK || !r.Uncorrected.OK {
		return r.Corrected.String()
	}
	cell := fmt.Sprint(r.Corrected.Value + r.Uncorrected.Value)
	if r.Pending.Value {
		cell += ", one more pending"
	}
	return cell
}

func reasonsCell(r device.Reading[[]string]) string {
	if !r.OK {
		return r.String()
	}
	if len(r.Value) == 0 {
		return "none"
	}
	return strings.Join(r.Value, ", ")
}

func leaseCell(h lease.Holding) string {
	switch {
	case h.Leased && h.PID != 0:
		return fmt.Sprintf("process %d", h.PID)
	case h.Leased:
		return "leased"
	case h.Mark != nil:
		return "marked"
	}
	return "free"
}
