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

	"github.com/spf13/pflag"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"github.com/ropewalk/ropewalk/workflows"
)

// Variables of a worker's host.
const (
	hostVariable    = "ROPEWALK_HOST"
	addressVariable = "ROPEWALK_HOST_ADDRESS"

	hostCertVariable      = "ROPEWALK_HOST_TLS_CERT"
	hostKeyVariable       = "ROPEWALK_HOST_TLS_KEY"
	hostAuthorityVariable = "ROPEWALK_HOST_TLS_CA"
)

// hostStages is how many stages a worker takes from its host's queue at once: more than any run sends, so that a stage
// that does not start at once means that the host is gone. In the worker the stages wait for their run's engine.
const hostStages = 256

// hostNames matches host names that can be part of a queue's name.
var hostNames = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,99}$`)

// checkHost determines this host's name, and checks what flags and variables say about it. It asks no server.
func (o *workerOptions) checkHost() error {
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
	if o.updateDevices < 1 {
		return badInput("--update-devices is %d, it must be at least 1", o.updateDevices)
	}
	if o.address = cmp.Or(o.address, os.Getenv(addressVariable)); o.address == "" {
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

// findAddress determines the address at which others reach this host, if nothing names it: that of the way to Temporal.
func (o *workerOptions) findAddress(temporal string) (err error) {
	if o.address == "" {
		o.address, err = gang.AddressTo(temporal)
	}
	return err
}

// addHostTLS adds the flags for connections between hosts.
func (o *workerOptions) addHostTLS(f *pflag.FlagSet) {
	f.StringVar(&o.hostTLS.Cert, "host-tls-cert", "", "this host's certificate chain (PEM), valid for servers and "+
		"clients, for TLS between the hosts of a recipe with engine.hosts (default: "+hostCertVariable+", else no TLS)")
	f.StringVar(&o.hostTLS.Key, "host-tls-key", "", "the certificate's key (PEM) (default: "+hostKeyVariable+")")
	f.StringVar(&o.hostTLS.CA, "host-tls-ca", "", "certificates (PEM) of the authority that issues certificates to "+
		"hosts, and to hosts alone (default: "+hostAuthorityVariable+")")
}

// checkHostTLS completes the names of the files for connections between hosts, and reads them.
func (o *workerOptions) checkHostTLS() error {
	t := &o.hostTLS
	t.Cert = cmp.Or(t.Cert, os.Getenv(hostCertVariable))
	t.Key = cmp.Or(t.Key, os.Getenv(hostKeyVariable))
	t.CA = cmp.Or(t.CA, os.Getenv(hostAuthorityVariable))
	if !t.On() {
		return nil
	}
	if t.Cert == "" || t.Key == "" || t.CA == "" {
		return badInput("--host-tls-cert, --host-tls-key and --host-tls-ca (%s, %s, %s) belong together",
			hostCertVariable, hostKeyVariable, hostAuthorityVariable)
	}
	if err := t.Check(); err != nil {
		return badInput("--host-tls-cert, --host-tls-key, --host-tls-ca: %w", err)
	}
	return nil
}

// gangs says how this worker's engines use several hosts: a workflow asks the workers of other hosts to join.
func (o workerOptions) gangs(c client.Client) enginepool.Gangs {
	return enginepool.Gangs{Host: o.host, Address: o.address, TLS: o.hostTLS,
		Summon: func(ctx context.Context, i gang.Invitation, members int) (func(), error) {
			run, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
				ID: "ranks/" + i.ID, TaskQueue: workflows.QueueCPU,
				StaticSummary: fmt.Sprintf("%d hosts for an engine of host %s", members, o.host),
			}, workflows.ServeRanksName, api.RanksInput{Leader: o.host, Address: i.Address, Gang: i.ID,
				Members: members})
			if err != nil {
				return nil, fmt.Errorf("start %s: %w", workflows.ServeRanksName, err)
			}
			return func() { callOff(c, run) }, nil
		}}
}

// callOffLimit is how long the server may take to cancel a summons.
const callOffLimit = 2 * time.Second

// callOff cancels a summons. Hosts that have already joined notice on their own.
func callOff(c client.Client, run client.WorkflowRun) {
	ctx, cancel := context.WithTimeout(context.Background(), callOffLimit)
	defer cancel()
	var over *serviceerror.NotFound
	if err := c.CancelWorkflow(ctx, run.GetID(), run.GetRunID()); err != nil && !errors.As(err, &over) {
		slog.Warn("call off hosts", "workflow", run.GetID(), "error", err)
	}
}

// homeOf names the host whose queue this worker polls in addition to gpu, or "" if it does not poll gpu.
func (o workerOptions) homeOf() string {
	if o.wants(workflows.QueueGPU) {
		return o.host
	}
	return ""
}

// generates reports whether the worker takes shards of rollouts.
func (o workerOptions) generates() bool {
	return o.wants(workflows.QueueRollout)
}

// atOnce is how many activities of a queue with models the worker runs at once: as many as updates have GPUs, or what
// the queue's tuning says if that is more.
func (o workerOptions) atOnce(q temporalconf.Queue, devices int) int {
	return max(1, devices/o.updateDevices, q.MaxConcurrentActivities)
}

// queuesOf lists the queues that the worker polls, with their tuning.
func (o workerOptions) queuesOf(conf temporalconf.Config, devices int) (out []temporalconf.NamedQueue) {
	for _, q := range conf.Queues.All() {
		if q.Name == workflows.QueueGPU || q.Name == workflows.QueueRollout {
			q.MaxConcurrentActivities = o.atOnce(q.Queue, devices)
		}
		if !o.wants(q.Name) {
			continue
		}
		out = append(out, q)
		if q.Name == workflows.QueueGPU {
			q.Name, q.MaxConcurrentActivities = api.HostQueue(o.host), hostStages
			out = append(out, q)
		}
	}
	return out
}
