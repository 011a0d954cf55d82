package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/gpu/metrics"
)

type gpuWatchOptions struct {
	json    bool
	metrics string
	host    device.Options
}

func (a *app) gpuWatchCommand() *cobra.Command {
	o := gpuWatchOptions{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "tell of every change of this host's devices, and serve their metrics",
		Long: "watch prints a line for every Xid and every change of a device's state until it is interrupted. With\n" +
			"--metrics-address Prometheus reads GET /metrics there. It leases nothing and marks nothing: workers watch for\n" +
			"themselves.",
		Example: "  ropewalk gpu watch\n  ropewalk gpu watch --json --metrics-address 127.0.0.1:9480",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.watchGPUs(cmd.Context(), o) },
	}
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object a line")
	cmd.Flags().StringVar(&o.metrics, "metrics-address", "", "serve Prometheus' metrics at this address, e.g. 127.0.0.1:9480")
	return cmd
}

func (a *app) watchGPUs(ctx context.Context, o gpuWatchOptions) error {
	host, err := device.Open(o.host)
	if errors.Is(err, device.ErrNoDriver) {
		return badInput("nothing to watch: %w", err)
	}
	if err != nil {
		return err
	}
	defer host.Close()
	w, err := host.Watch(device.WatchOptions{})
	if err != nil {
		return err
	}
	defer w.Close()
	var printing sync.Mutex
	tell := func(c device.Change) {
		printing.Lock()
		defer printing.Unlock()
		a.printChange(c, o.json)
	}
	defer w.Subscribe(tell)()
	if o.metrics != "" {
		stop, err := a.serveGPUMetrics(w, o.metrics)
		if err != nil {
			return err
		}
		defer stop()
	}
	for _, s := range w.Status() {
		tell(device.Change{At: s.Since, Index: s.Index, UUID: s.UUID, From: s.Health, To: s.Health})
	}
	<-ctx.Done()
	return nil
}

// serveGPUMetrics serves until the returned function is called.
func (a *app) serveGPUMetrics(w *device.Watch, address string) (func(), error) {
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, badInput("--metrics-address: %w", err)
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", metrics.Handler(metrics.New(w, nil)))
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	var serving sync.WaitGroup
	serving.Go(func() { _ = server.Serve(listener) }) // ends with Close alone
	fmt.Fprintf(a.err, "metrics at http://%s/metrics\n", listener.Addr())
	return func() {
		_ = server.Close()
		serving.Wait()
	}, nil
}

// gpuChange is a line of --json.
type gpuChange struct {
	At     time.Time     `json:"at"`
	Index  int           `json:"index"`
	UUID   string        `json:"uuid"`
	Was    device.State  `json:"was"`
	Health device.Health `json:"health"`
	Xid    int           `json:"xid,omitempty"`
	What   string        `json:"what,omitempty"` // the Xid
}

func (a *app) printChange(c device.Change, asJSON bool) {
	line := gpuChange{At: c.At.UTC(), Index: c.Index, UUID: c.UUID, Was: c.From.State, Health: c.To, Xid: c.Xid}
	if c.Xid != 0 {
		line.What = device.XidOf(c.Xid).Name
	}
	if asJSON {
		text, err := json.Marshal(line)
		if err == nil {
			fmt.Fprintf(a.out, "%s\n", text)
		}
		return
	}
	fmt.Fprintf(a.out, "%s  gpu %d  %s", line.At.Format(time.RFC3339), c.Index, c.To)
	if c.Xid != 0 {
		fmt.Fprintf(a.out, "  Xid %d: %s", c.Xid, line.What)
	}
	fmt.Fprintln(a.out)
}

func (a *app) gpuReadmitCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "readmit DEVICE",
		Short: "let a device that had failed be leased again, after a reset",
		Long: "readmit takes away the mark that a failed device bears until the machine is started again. DEVICE is its index\n" +
			"or UUID. Workers that saw it fail keep it back until they are started again.",
		Example: "  nvidia-smi --gpu-reset -i 3 && ropewalk gpu readmit 3",
		Args:    exactly("DEVICE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return a.readmitGPU(device.Options{}, args[0])
		},
	}
}

func (a *app) readmitGPU(o device.Options, name string) error {
	uuid := name
	if index, err := strconv.Atoi(name); err == nil {
		if uuid, err = uuidOf(o, index); err != nil {
			return err
		}
	}
	err := lease.Readmit(lease.Dir(), uuid)
	if errors.Is(err, lease.ErrNotMarked) {
		return badInput("%w", err)
	}
	if err != nil {
		return err
	}
	fmt.Fprintf(a.out, "%s can be leased again\n", uuid)
	return nil
}

// uuidOf finds a device by its index.
func uuidOf(o device.Options, index int) (string, error) {
	host, err := device.Open(o)
	if err != nil {
		return "", badInput("device %d: %w; name it by its UUID", index, err)
	}
	defer host.Close()
	inv, err := host.Inventory()
	if err != nil {
		return "", err
	}
	for _, d := range inv.Devices {
		if d.Index == index && d.UUID != "" {
			return d.UUID, nil
		}
	}
	return "", badInput("device %d: there is no such device; `ropewalk gpu` lists them", index)
}
