// Package inventory reports a host's NVIDIA devices: the driver's data about each device, its health, its lease, and
// the kind of engine that suits updates on this host. A Collector exports them to Prometheus.
package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
)

// Report describes a host's devices.
type Report struct {
	// Driver is nil without a driver. NoDriver then says why.
	Driver   *device.Driver   `json:"driver"`
	NoDriver string           `json:"no_driver,omitempty"`
	Engine   Engine           `json:"engine"`
	Devices  []Device         `json:"devices"`
	Topology *device.Topology `json:"topology,omitempty"`
}

// Engine is the kind of engine that suits this host's devices.
type Engine struct {
	Kind string `json:"kind"` // cpu or torch
	Why  string `json:"why"`
}

// Device is one device with its health and its lease.
type Device struct {
	device.Device
	Health device.Health `json:"health"`
	Lease  lease.Holding `json:"lease"`
}

// peekLimit is how long Of waits for processes that are choosing devices.
const peekLimit = 5 * time.Second

// Of reads the devices from the driver and the leases from a folder.
func Of(ctx context.Context, o device.Options, leases string) (Report, error) {
	host, err := device.Open(o)
	if errors.Is(err, device.ErrNoDriver) {
		return Report{NoDriver: err.Error(), Engine: Engine{"cpu", err.Error()}, Devices: []Device{}}, nil
	}
	if err != nil {
		return Report{}, err
	}
	defer host.Close()
	inv, err := host.Inventory()
	if err != nil {
		return Report{}, err
	}
	var uuids []string
	for _, d := range inv.Devices {
		uuids = append(uuids, d.UUID)
	}
	ctx, cancel := context.WithTimeout(ctx, peekLimit)
	defer cancel()
	holdings, err := lease.Peek(ctx, leases, uuids)
	if err != nil {
		return Report{}, err
	}
	r := Report{Driver: &inv.Driver, Devices: []Device{}, Topology: inv.Topology}
	sound := 0
	for _, d := range inv.Devices {
		g := Device{Device: d, Health: device.Assess(d), Lease: holdings[d.UUID]}
		if g.leasable() {
			sound++
		}
		r.Devices = append(r.Devices, g)
	}
	r.Engine = Engine{"torch", fmt.Sprintf("%d of %d devices can be leased", sound, len(r.Devices))}
	if sound == 0 {
		r.Engine.Kind = "cpu"
	}
	return r, nil
}

// leasable reports whether a device can be leased as soon as it is free.
func (g Device) leasable() bool {
	return g.Health.State == device.Healthy && g.Lease.Mark == nil && !g.MIG.Enabled.Value
}
