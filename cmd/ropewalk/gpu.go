package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
)

type gpuOptions struct {
	json bool
	host device.Options
}

func (a *app) gpuCommand() *cobra.Command {
	o := gpuOptions{}
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "show this host's NVIDIA devices, their health and who has them",
		Long: "gpu asks the driver for every device: memory, utilisation, temperature, power, clocks and why they are low, ECC\n" +
			"errors, replaced memory rows, NVLinks, processes, and how the devices are connected; and the host's leases. What\n" +
			"a device cannot tell is \"not supported\", null in JSON. A host without a driver is no error: its updates take the\n" +
			"CPU engine. " + lease.DirVariable + " names the folder of leases (default: " + lease.DefaultDir + "). docs/gpu.md says what follows from each state.",
		Example: "  ropewalk gpu\n  ropewalk gpu --json | jq '.devices[].health'",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.showGPUs(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object")
	cmd.AddCommand(a.gpuWatchCommand(), a.gpuReadmitCommand())
	return cmd
}

// gpuReport is what the command tells.
type gpuReport struct {
	// Driver is null without a driver; NoDriver says why.
	Driver   *device.Driver   `json:"driver"`
	NoDriver string           `json:"no_driver,omitempty"`
	Engine   engineChoice     `json:"engine"`
	Devices  []gpuDevice      `json:"devices"`
	Topology *device.Topology `json:"topology,omitempty"`
}

// engineChoice is the kind of engine that this host's devices speak for.
type engineChoice struct {
	Kind string `json:"kind"` // cpu or torch
	Why  string `json:"why"`
}

type gpuDevice struct {
	device.Device
	Health device.Health `json:"health"`
	Lease  lease.Holding `json:"lease"`
}

// peekLimit is how long the command waits for processes that are choosing devices.
const peekLimit = 5 * time.Second

// gpuReportOf asks the driver and looks at the leases.
func gpuReportOf(ctx context.Context, o device.Options, leases string) (gpuReport, error) {
	host, err := device.Open(o)
	if errors.Is(err, device.ErrNoDriver) {
		return gpuReport{NoDriver: err.Error(), Engine: engineChoice{"cpu", err.Error()}, Devices: []gpuDevice{}}, nil
	}
	if err != nil {
		return gpuReport{}, err
	}
	defer host.Close()
	inv, err := host.Inventory()
	if err != nil {
		return gpuReport{}, err
	}
	var uuids []string
	for _, d := range inv.Devices {
		uuids = append(uuids, d.UUID)
	}
	ctx, cancel := context.WithTimeout(ctx, peekLimit)
	defer cancel()
	holdings, err := lease.Peek(ctx, leases, uuids)
	if err != nil {
		return gpuReport{}, err
	}
	r := gpuReport{Driver: &inv.Driver, Devices: []gpuDevice{}, Topology: inv.Topology}
	sound := 0
	for _, d := range inv.Devices {
		g := gpuDevice{Device: d, Health: device.Assess(d), Lease: holdings[d.UUID]}
		if g.leasable() {
			sound++
		}
		r.Devices = append(r.Devices, g)
	}
	r.Engine = engineChoice{"torch", fmt.Sprintf("%d of %d devices can be leased", sound, len(r.Devices))}
	if sound == 0 {
		r.Engine.Kind = "cpu"
	}
	return r, nil
}

// leasable reports whether a device is given out once nobody has it.
func (g gpuDevice) leasable() bool {
	return g.Health.State == device.Healthy && g.Lease.Mark == nil && !g.MIG.Enabled.Value
}

func (a *app) showGPUs(ctx context.Context, o gpuOptions) error {
	r, err := gpuReportOf(ctx, o.host, lease.Dir())
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(r)
	}
	return printGPUs(a.out, r)
}
