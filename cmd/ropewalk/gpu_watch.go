package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

type gpuWatchOptions struct {
	metricsOptions
	host device.Options
}

func gpuWatchCommand(con *console) *cobra.Command {
	o := gpuWatchOptions{}
	cmd := &cobra.Command{
		Use:   "watch",
		Short: "print every change of this host's devices, and serve their metrics",
		Long: "watch prints a line for every Xid and every change of a device's state until it is interrupted. With\n" +
			"--metrics-address it serves Prometheus metrics at GET /metrics. It neither leases nor marks devices:\n" +
			"workers watch them on their own.",
		Example: "  ropewalk gpu watch\n  ropewalk gpu watch --json --metrics-address 127.0.0.1:9480",
		Args:    exactly(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return watchGPUs(cmd.Context(), con, o) },
	}
	con.jsonFlag(cmd, oneObject+" a line")
	o.add(cmd.Flags(), "")
	return cmd
}

func watchGPUs(ctx context.Context, con *console, o gpuWatchOptions) error {
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
		_ = printChange(con, c) // no one reads there otherwise
	}
	defer w.Subscribe(tell)()
	code, err := codeDigest()
	if err != nil {
		return err
	}
	counts, stop, err := o.serve(con, "gpu", code)
	if err != nil {
		return err
	}
	defer stop()
	if err := counts.Register(inventory.NewCollector(w, nil)); err != nil {
		return err
	}
	for _, s := range w.Status() {
		tell(device.Change{At: s.Since, Index: s.Index, UUID: s.UUID, From: s.Health, To: s.Health})
	}
	<-ctx.Done()
	return nil
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

func printChange(con *console, c device.Change) error {
	line := gpuChange{At: c.At.UTC(), Index: c.Index, UUID: c.UUID, Was: c.From.State, Health: c.To, Xid: c.Xid}
	if c.Xid != 0 {
		line.What = device.XidOf(c.Xid).Name
	}
	return con.render(line, func(p *terminal.Printer) {
		what := ""
		if c.Xid != 0 {
			what = fmt.Sprintf("  Xid %d: %s", c.Xid, line.What)
		}
		p.Line("%s  gpu %d  %s%s", line.At.Format(time.RFC3339), c.Index, c.To, what)
	})
}

func gpuReadmitCommand(con *console) *cobra.Command {
	return &cobra.Command{
		Use:   "readmit DEVICE",
		Short: "allow a failed device to be leased again after a reset",
		Long: "readmit removes the mark of a failed device, which otherwise stays until the machine restarts.\n" +
			"DEVICE is its index or UUID. Workers that saw the device fail do not use it until they are\n" +
			"restarted.",
		Example: "  nvidia-smi --gpu-reset -i 3 && ropewalk gpu readmit 3",
		Args:    exactly("DEVICE"),
		RunE: func(_ *cobra.Command, args []string) error {
			return readmitGPU(con, device.Options{}, args[0])
		},
	}
}

func readmitGPU(con *console, o device.Options, name string) error {
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
	fmt.Fprintf(con.out, "%s can be leased again\n", uuid)
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
