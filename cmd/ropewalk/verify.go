package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

func (a *app) verifyCommand() *cobra.Command {
	asJSON, gen := false, generationFlag{Generation: analysis.AllGenerations}
	cmd := &cobra.Command{
		Use:   "verify RUN",
		Short: "check everything that a run has committed",
		Long: "verify reads every manifest, shard and checkpoint of a run and checks existence, digests, row\n" +
			"counts, rows and lineage, whatever its generation. It names each fault and exits with 1 if there is one.\n" +
			"--gen N names the faults of that generation alone.",
		Example: "  ropewalk verify quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.verify(cmd.Context(), args[0], gen.Generation, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object with the counts and faults")
	gen.add(cmd)
	return cmd
}

func (a *app) verify(ctx context.Context, run string, gen analysis.Generation, asJSON bool) error {
	s, err := a.join(ctx, needStore) // through the server, as everybody else gets it
	if err != nil {
		return err
	}
	defer s.close()
	found, err := analysis.New(s.store).Verify(ctx, run)
	if err != nil {
		return missing(err)
	}
	if n, numbered := gen.Number(); numbered {
		if found, err = found.Of(n); err != nil {
			return missing(err)
		}
	}
	if asJSON {
		err = a.printJSON(found)
	} else {
		err = a.printFaults(found)
	}
	if err == nil && len(found.Faults) > 0 {
		return silentError{exitFailed}
	}
	return err
}

// printFaults lists the faults, what to do about each kind, and the summary.
func (a *app) printFaults(v analysis.Verification) error {
	advised := map[analysis.FaultKind]bool{}
	for _, f := range v.Faults {
		fmt.Fprintf(a.out, "%s: %s %s\n", f.Kind, f.Key, f.Message)
	}
	for _, f := range v.Faults {
		if !advised[f.Kind] {
			advised[f.Kind] = true
			fmt.Fprintf(a.out, "what to do (%s): %s\n", f.Kind, f.Kind.Advice())
		}
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
	_, err := fmt.Fprintf(a.out, "run %s: %s; %d steps done, %d manifests, %d shards, %d rows, %d checkpoints (%d more pruned), %d bytes; %d orphans, never read\n",
		v.Run, outcome, v.Heads, v.Manifests, v.Shards, v.Rows, v.Checkpoints, v.Pruned, v.Bytes, v.Orphans)
	return err
}
