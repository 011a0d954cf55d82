package lease

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// VisibleVariable is CUDA's own variable. Schedulers set it to the devices that a process may use.
const VisibleVariable = "CUDA_VISIBLE_DEVICES"

// Visible parses the variable's value: indices, UUIDs or prefixes of UUIDs, separated by commas. An empty value or -1
// means no device. Indices follow the order of the PCI bus. CUDA uses that order only with CUDA_DEVICE_ORDER=PCI_BUS_ID
// or if all devices are alike. CUDA skips a device that it cannot find; Visible returns an error, because a worker
// should not start with fewer devices than it was given.
func Visible(value string, all []device.Device) ([]string, error) {
	out := []string{}
	if value = strings.TrimSpace(value); value == "" || value == "-1" {
		return out, nil
	}
	for name := range strings.SplitSeq(value, ",") {
		d, err := named(strings.TrimSpace(name), all)
		if err != nil {
			return nil, fmt.Errorf("%s=%s: %w", VisibleVariable, value, err)
		}
		out = append(out, d.UUID)
	}
	return out, nil
}

func named(name string, all []device.Device) (device.Device, error) {
	index, err := strconv.Atoi(name)
	byIndex := err == nil
	var found []device.Device
	for _, d := range all {
		if byIndex && d.Index == index || !byIndex && name != "" && strings.HasPrefix(d.UUID, name) {
			found = append(found, d)
		}
	}
	if len(found) != 1 || found[0].UUID == "" {
		return device.Device{}, fmt.Errorf("%q names %d of this host's %d devices", name, len(found), len(all))
	}
	return found[0], nil
}
