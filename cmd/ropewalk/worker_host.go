package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"regexp"
	"time"

	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/gpu/leased"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/workflows"
)

// Variables of a worker's host.
const (
	hostVariable    = "ROPEWALK_HOST"
	addressVariable = "ROPEWALK_HOST_ADDRESS"
)

// hostStages is how many stages a worker takes from its host's own queue at once: all that a run sends side by side, so that
// what is not begun at once says that the host is gone. They wait for their run's engine in the worker.
const hostStages = 256

// hostNames are those that make a queue's name.
var hostNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// nameHost settles how this host is called and where others reach it.
func (o *workerOptions) nameHost(temporal string) error {
	if o.host = cmp.Or(o.host, os.Getenv(hostVariable)); o.host == "" {
		name, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("find this host's name (%s names it): %w", hostVariable, err)
		}
		o.host = name
	}
	if !hostNames.MatchString(o.host) {
		return badInput("--host, %s: must match %s, got %q", hostVariable, hostNames, o.host)
	}
	if o.slotDevices < 1 {
		return badInput("--slot-devices is %d, it must be at least 1", o.slotDevices)
	}
	if o.address = cmp.Or(o.address, os.Getenv(addressVariable)); o.address == "" {
		address, err := gang.AddressTo(temporal)
		if err != nil {
			return err
		}
		o.address = address
		return nil
	}
	if net.ParseIP(o.address) == nil {
		return badInput("--host-address, %s: must be an IP address, got %q", addressVariable, o.address)
	}
	if _, err := gang.Interface(o.address); err != nil {
		return badInput("--host-address, %s: %w", addressVariable, err)
	}
	return nil
}

// gangs are how this worker's engines come to lie on several hosts: through a workflow that has their workers come.
func (o workerOptions) gangs(c client.Client) leased.Gangs {
	return leased.Gangs{Host: o.host, Address: o.address, Summon: func(ctx context.Context, i gang.Invitation, members int) (func(), error) {
		run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
			ID: "ranks/" + i.ID, TaskQueue: workflows.QueueCPU, StaticSummary: fmt.Sprintf("%d hosts for an engine of host %s", members, o.host),
		}, workflows.ServeRanksName, wire.RanksInput{Leader: o.host, Address: i.Address, Gang: i.ID, Members: members})
		if err != nil {
			return nil, fmt.Errorf("start %s: %w", workflows.ServeRanksName, err)
		}
		return func() { callOff(c, run) }, nil
	}}
}

// callOffLimit is how long the server may take to hear that nobody is wanted any more.
const callOffLimit = 2 * time.Second

// callOff ends a summons; the hosts that have followed it know by themselves.
func callOff(c client.Client, run client.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.Background(), callOffLimit)
	defer cancel()
	var over *serviceerror.NotFound
	if err := c.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil && !errors.As(err, &over) {
		slog.Warn("call off hosts", "workflow", run.GetID(), "error", err)
	}
}

// homeOf names the host whose queue this worker polls beside gpu; "" where it does not poll that.
func (o workerOptions) homeOf() string {
	if o.wants(workflows.QueueGPU) {
		return o.host
	}
	return ""
}

// queuesOf are those that the worker polls, with their tuning. As many updates run at once as gangs of the slot's devices fit on
// the host, and their rollouts beside them; without devices it is one.
func (o workerOptions) queuesOf(conf temporalconf.Config, devices int) (out []temporalconf.NamedQueue) {
	slots := max(1, devices/o.slotDevices)
	for _, q := range conf.Queues.All() {
		if !o.wants(q.Name) {
			continue
		}
		if q.Name == workflows.QueueGPU || q.Name == workflows.QueueRollout {
			q.MaxConcurrentActivities = max(slots, q.MaxConcurrentActivities)
		}
		out = append(out, q)
		if q.Name == workflows.QueueGPU {
			q.Name, q.MaxConcurrentActivities = wire.HostQueue(o.host), hostStages
			out = append(out, q)
		}
	}
	return out
}
