package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
)

// sandboxCommand is the parent of what concerns code execution alone.
func (a *app) sandboxCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "run code that one does not trust",
		Long: "sandbox runs programs in children of warm interpreters, isolated as strongly as the machine allows.\n" +
			"Workers have one of their own; `sandbox serve` offers one to others.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(a.sandboxServeCommand(), a.sandboxExecCommand(), a.sandboxDoctorCommand())
	return cmd
}

// tokenVariable holds the token that sandbox services ask for: a flag would show it to every user of
// the machine.
const tokenVariable = "ROPEWALK_SANDBOX_TOKEN"

// sandboxPython is the interpreter that runs calls: the one a flag names, else the one the environment does, else "",
// for which one is found.
func sandboxPython(named string) string { return cmp.Or(named, os.Getenv("ROPEWALK_SANDBOX_PYTHON")) }

// minTierFlag adds --min-tier; "full" is what a call may expect that says nothing.
func minTierFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "min-tier", string(sandbox.TierFull), "the weakest tier that will do: full, landlock or rlimits")
}

func parseMinTier(name string) (sandbox.Tier, error) {
	tier, err := sandbox.ParseTier(name)
	if err != nil {
		return "", badInput("--min-tier: %w", err)
	}
	return tier, nil
}

// sandboxPatience is how long services are waited for at the start.
const sandboxPatience = 30 * time.Second

// openSandboxClient connects to services by their addresses, host:port each, or https://host:port, and
// waits until one answers.
func openSandboxClient(ctx context.Context, addresses []string, preset sandbox.Preset) (*client.Client, error) {
	o := client.Options{Token: os.Getenv(tokenVariable), Preset: preset}
	for _, address := range addresses {
		bare, secure := strings.CutPrefix(address, "https://")
		if secure != (o.TLS != nil) && len(o.Addresses) > 0 {
			return nil, badInput("sandbox services %s: all or none are spoken to over TLS", strings.Join(addresses, ", "))
		}
		if secure {
			o.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
		}
		o.Addresses = append(o.Addresses, strings.TrimPrefix(bare, "http://"))
	}
	c, err := client.Open(o)
	if err != nil {
		return nil, badInputError{err}
	}
	waiting, cancel := context.WithTimeout(ctx, sandboxPatience)
	defer cancel()
	if err := c.Ready(waiting); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
