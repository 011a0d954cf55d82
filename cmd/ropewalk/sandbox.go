package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
)

// sandboxCommand is the parent of the commands for code execution.
func sandboxCommand(con *console) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sandbox",
		Short: "run untrusted code",
		Long: "sandbox runs programs in children of warm interpreters, isolated as strongly as the machine allows.\n" +
			"Each worker has its own sandbox; `sandbox serve` offers one to other programs.",
		Args: noSuchCommand,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(sandboxServeCommand(con), sandboxExecCommand(con), sandboxDoctorCommand(con))
	return cmd
}

// tokenVariable holds the token for sandbox services; a flag would be visible to every user of the machine.
const tokenVariable = "ROPEWALK_SANDBOX_TOKEN"

// sandboxPython is the interpreter that runs calls: the one that a flag names, else the one that the environment names,
// else "", which means that one is searched for.
func sandboxPython(named string) string { return cmp.Or(named, os.Getenv("ROPEWALK_SANDBOX_PYTHON")) }

// toolsPython is the interpreter that tools/sandbox-python.sh has made in .tools, which is tried first where one is
// searched for; "" if there is none.
func toolsPython() string {
	made, err := stack.InTools("sandbox-python/bin/python")
	if err != nil {
		slog.Warn("the sandbox goes on without the interpreter in .tools", "error", err)
	}
	return made
}

// minTierFlag adds --min-tier; its default is what a call without a minimum may expect.
func minTierFlag(f *pflag.FlagSet, into *string) {
	f.StringVar(into, "min-tier", string(sandbox.TierFull), "the weakest acceptable tier: full, landlock or rlimits")
}

func parseMinTier(name string) (sandbox.Tier, error) {
	tier, err := sandbox.ParseTier(name)
	if err != nil {
		return "", badInput("--min-tier: %w", err)
	}
	return tier, nil
}

// servicesReadyWithin is how long a command waits for sandbox services at its start.
const servicesReadyWithin = 30 * time.Second

// authorityVariable names a PEM file with the certificates that sandbox services are verified with, in place of the
// system's.
const authorityVariable = "ROPEWALK_SANDBOX_CA"

// clientTLS returns how a client verifies services: with the certificates in the file that a variable names, or with
// the system's.
func clientTLS(variable string) (*tls.Config, error) {
	secure := &tls.Config{MinVersion: tls.VersionTLS12}
	file := os.Getenv(variable)
	if file == "" {
		return secure, nil
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, badInput("%s: %w", variable, err)
	}
	secure.RootCAs = x509.NewCertPool()
	if !secure.RootCAs.AppendCertsFromPEM(data) {
		return nil, badInput("%s: %s holds no PEM certificate", variable, file)
	}
	return secure, nil
}

// openSandboxClient connects to services by their addresses, host:port each, or https://host:port, and
// waits until one answers.
func openSandboxClient(ctx context.Context, addresses []string, preset sandbox.Preset) (*client.Client, error) {
	o := client.Options{Token: os.Getenv(tokenVariable), Preset: preset}
	var err error
	for _, address := range addresses {
		bare, secure := strings.CutPrefix(address, "https://")
		if secure != (o.TLS != nil) && len(o.Addresses) > 0 {
			return nil, badInput("sandbox services %s: use TLS for all of them or for none",
				strings.Join(addresses, ", "))
		}
		if secure {
			if o.TLS, err = clientTLS(authorityVariable); err != nil {
				return nil, err
			}
		}
		o.Addresses = append(o.Addresses, strings.TrimPrefix(bare, "http://"))
	}
	c, err := client.Open(o)
	if err != nil {
		return nil, badinput.Of(err)
	}
	waiting, cancel := context.WithTimeout(ctx, servicesReadyWithin)
	defer cancel()
	if err := c.Ready(waiting); err != nil {
		c.Close()
		return nil, err
	}
	return c, nil
}
