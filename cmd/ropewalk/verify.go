package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/signing"
	"github.com/ropewalk/ropewalk/internal/terminal"
)

func verifyCommand(con *console) *cobra.Command {
	var keys []string
	unfinished, gen := false, generationFlag{Generation: analysis.AllGenerations}
	cmd := &cobra.Command{
		Use:   "verify RUN",
		Short: "check everything that a run has committed",
		Long: "verify reads every manifest, shard and checkpoint of a run, in all generations, and checks:\n\n" +
			checksHelp() +
			"\nIt prints each fault and exits with 1 if there is one. Without --keys, verify does not find a change\n" +
			"that was made to an object and, consistently, to everything that follows from it. With --keys, each\n" +
			"manifest, head and note of pruning must have a signature by one of these public keys, and the run\n" +
			"must be complete unless --unfinished is given. Workers sign with the key that\n" + signing.Variable +
			" names.\n" +
			"--gen N prints only the faults of that generation.",
		Example: "  ropewalk verify quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return verifyRun(cmd.Context(), con, args[0], gen.Generation, keys, unfinished)
		},
	}
	con.jsonFlag(cmd, oneObject+" with the counts and faults")
	cmd.Flags().StringSliceVar(&keys, "keys", nil, "`FILES` with public keys (Ed25519, PEM) that must have signed the "+
		"run's manifests, heads and notes of pruning")
	cmd.Flags().BoolVar(&unfinished, "unfinished", false, "with --keys, accept a run that is not complete")
	gen.add(cmd)
	return cmd
}

func verifyRun(ctx context.Context, con *console, run string, gen analysis.Generation, files []string,
	unfinished bool) error {
	var keys signing.Keys
	if len(files) > 0 {
		var err error
		if keys, err = signing.LoadKeys(files); err != nil {
			return badInput("--keys: %w", err)
		}
	}
	s, err := con.connector().Read(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	found, err := verify.Signed(ctx, s.Store, run, keys, unfinished)
	if err != nil {
		return runs.Missing(err)
	}
	if n, numbered := gen.Number(); numbered {
		if found, err = found.Of(n); err != nil {
			return runs.Missing(err)
		}
	}
	err = con.render(found, func(p *terminal.Printer) { printFaults(p, found) })
	if err == nil && len(found.Faults) > 0 {
		return silentError{exitFailed}
	}
	return err
}

// checksHelp lists the checks, one a line.
func checksHelp() string {
	var b strings.Builder
	for _, c := range verify.Checks() {
		fmt.Fprintf(&b, "  %-14s  %s\n", c.Name, c.About)
	}
	return b.String()
}

// printFaults lists the faults, what to do about each kind, and a summary.
func printFaults(p *terminal.Printer, v verify.Report) {
	advised := map[verify.FaultKind]bool{}
	for _, f := range v.Faults {
		p.Line("%s: %s %s", f.Kind, f.Key, f.Message)
	}
	for _, f := range v.Faults {
		if !advised[f.Kind] {
			advised[f.Kind] = true
			p.Line("what to do (%s): %s", f.Kind, f.Kind.Advice())
		}
	}
	if v.Untimed > 0 {
		p.Line("warning: %d steps have no measured times: they are missing from the table timings and from all "+
			"figures of speed; no result depends on them", v.Untimed)
	}
	outcome := "no fault"
	if n := len(v.Faults); n == 1 {
		outcome = "1 fault"
	} else if n > 1 {
		outcome = fmt.Sprintf("%d faults", n)
	}
	if n := len(v.Generations); n > 1 {
		outcome += fmt.Sprintf(" in %d generations", n)
	}
	p.Line("run %s: %s; %d steps done, %d manifests, %d shards, %d rows, %d checkpoints (%d more pruned), %d bytes; "+
		"%d orphans, never read",
		v.Run, outcome, v.Heads, v.Manifests, v.Shards, v.Rows, v.Checkpoints, v.Pruned, v.Bytes, v.Orphans)
}
