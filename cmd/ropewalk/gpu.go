package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
)

type gpuOptions struct{ host device.Options }

func gpuCommand(con *console) *cobra.Command {
	o := gpuOptions{}
	cmd := &cobra.Command{
		Use:   "gpu",
		Short: "show this host's NVIDIA devices, their health and which process leases them",
		Long: "gpu prints what the driver reports for every device: memory, utilisation, temperature, power, clocks " +
			"and the reasons\n" +
			"why they are low, ECC errors, replaced memory rows, NVLinks, processes and how the devices are " +
			"connected; and the\n" +
			"host's leases. Readings that a device does not support are \"not supported\", null in JSON. A host " +
			"without a driver\n" +
			"is not an error: its updates use the CPU engine. " + lease.DirVariable +
			" names the folder of leases (default: " + lease.DefaultDir + "). docs/gpu.md explains each state.",
		Example: "  ropewalk gpu\n  ropewalk gpu --json | jq '.devices[].health'",
		Args:    noSuchCommand,
		RunE:    func(cmd *cobra.Command, _ []string) error { return showGPUs(cmd.Context(), con, o) },
	}
	con.jsonFlag(cmd, oneObject)
	cmd.AddCommand(gpuWatchCommand(con), gpuReadmitCommand(con), gpuSetupCommand(con))
	return cmd
}

func showGPUs(ctx context.Context, con *console, o gpuOptions) error {
	r, err := inventory.Of(ctx, o.host, lease.Dir())
	if err != nil {
		return err
	}
	return con.show(r, r.WriteText)
}
