package planning

import (
	"context"
	"os"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/plan"
)

// InventoryHere returns this host's memory and the devices that NVML reports, each with the memory that is free now. A
// device that a run could not lease says why.
func InventoryHere(ctx context.Context, o device.Options) (plan.Inventory, error) {
	report, err := inventory.Of(ctx, o, lease.Dir())
	if err != nil {
		return plan.Inventory{}, err
	}
	return inventoryOf(report, HostMemory()), nil
}

func inventoryOf(report inventory.Report, memory int64) plan.Inventory {
	h := plan.Host{Name: "this host", Memory: memory}
	if name, err := os.Hostname(); err == nil {
		h.Name = name
	}
	for _, d := range report.Devices {
		p, _ := plan.PartOf(d.Name)
		bytes := d.Memory.Free.Value
		if bytes == 0 {
			bytes = d.Memory.Total.Value
		}
		h.Devices = append(h.Devices, plan.Device{Index: d.Index, Name: d.Name, Memory: bytes, Flops: p.Flops,
			Bandwidth: p.Bandwidth, Unusable: unusable(d)})
	}
	out := plan.Inventory{Source: "as NVML reports it now", Hosts: []plan.Host{h}}
	if report.Driver == nil {
		out.Source = "no NVIDIA driver"
	}
	return out
}

// unusable says why nothing can be placed on a device, or returns "".
func unusable(d inventory.Device) string {
	switch {
	case d.Lost != "":
		return d.Lost
	case d.MIG.Enabled.Value:
		return "it is cut into MIG instances"
	case d.Health.State != device.Healthy:
		return "it is " + string(d.Health.State)
	case d.Lease.Mark != nil:
		return "it is marked as failed"
	}
	return ""
}

// HostMemory is the machine's memory in bytes, or 0 if the system does not say.
func HostMemory() int64 {
	var info unix.Sysinfo_t
	if unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(info.Totalram) * int64(info.Unit)
}
