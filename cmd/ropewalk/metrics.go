package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"

	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/metrics"
)

// metricsVariable is the default of --metrics-address for processes whose command line others write: workers that the
// local stack starts, services of systemd.
const metricsVariable = "ROPEWALK_METRICS_ADDRESS"

// metricsOptions are where a command serves its metrics.
type metricsOptions struct {
	at       string
	variable string
}

// add adds the flag. variable names the variable that holds its default, or is empty.
func (o *metricsOptions) add(f *pflag.FlagSet, variable string) {
	o.variable = variable
	text := "serve Prometheus' metrics at GET /metrics on this address, e.g. 127.0.0.1:9463; port 0 takes a free one"
	if variable != "" {
		text += " (default: " + variable + ", else none)"
	}
	f.StringVar(&o.at, "metrics-address", "", text)
}

// serve starts serving, if an address is given, and prints where on standard error. The returned Process is nil if none
// is given; then nothing is counted.
func (o metricsOptions) serve(con *console, kind, program string) (*metrics.Process, func(), error) {
	address := o.at
	if o.variable != "" {
		address = cmp.Or(address, os.Getenv(o.variable))
	}
	if address == "" {
		return nil, func() {}, nil
	}
	p := metrics.New(kind, program, programVersion())
	server, err := p.Serve(address)
	if err != nil {
		return nil, nil, badInput("--metrics-address: %w", err)
	}
	fmt.Fprintf(con.err, "metrics at %s\n", server.URL())
	return p, func() {
		if err := server.Close(); err != nil {
			slog.Warn("end the metrics' server", "error", err)
		}
	}, nil
}

// watchDevices adds the host's devices to a process's metrics, if it has any.
func watchDevices(p *metrics.Process, torch *enginepool.Maker) error {
	watch, pool := torch.Watch()
	if watch == nil {
		return nil
	}
	return p.Register(inventory.NewCollector(watch, pool))
}
