package main

import (
	"context"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/compare"
	"github.com/ropewalk/ropewalk/internal/runs"
)

type diffOptions struct {
	step int
	gens string
}

func diffCommand(con *console) *cobra.Command {
	o := diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff A B… | RUN --step N",
		Short: "compare runs, or two generations of a step",
		Long: "diff A B compares two or more runs: the recipe fields that differ, the programs and machines that\n" +
			"made the runs, the first row in which their records differ, success on the same held-out problems,\n" +
			"and the figures of each step. `ropewalk report A B` draws the same.\n\n" +
			"diff RUN --step N compares rewards, selection and advantages of two generations of a step.\n" +
			"Generation 0 is the run's own; `ropewalk replay` makes further ones. Where a generation lacks a\n" +
			"stage, the step's own stage is compared, and the output says so.",
		Example: "  ropewalk diff quickstart-s1-20260102-030405 quickstart-s2-20260102-030405\n" +
			"  ropewalk diff quickstart-s1-20260102-030405 --step 3 --gen 0,1",
		Args: someRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 1 {
				for _, name := range []string{"step", "gen"} {
					if cmd.Flags().Changed(name) {
						return badInput("--%s: is for the generations of one run, and %d runs are named", name,
							len(args))
					}
				}
				return diffRuns(cmd.Context(), con, args)
			}
			before, after, err := o.check()
			if err != nil {
				return err
			}
			return diffGenerations(cmd.Context(), con, args[0], o, before, after)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "compare this `STEP`")
	cmd.Flags().StringVar(&o.gens, "gen", "0,1", "the two generations, `BEFORE,AFTER`")
	con.jsonFlag(cmd, oneObject+" with all figures")
	return cmd
}

// check refuses bad options before the servers are needed.
func (o diffOptions) check() (before, after int, err error) {
	if o.step < 1 {
		return 0, 0, badInput("--step: name a step, 1 or later; or name a second run to compare two runs")
	}
	first, second, two := strings.Cut(o.gens, ",")
	before, errBefore := strconv.Atoi(strings.TrimSpace(first))
	after, errAfter := strconv.Atoi(strings.TrimSpace(second))
	if !two || errBefore != nil || errAfter != nil || before < 0 || after < 0 {
		return 0, 0, badInput("--gen: want two generations as BEFORE,AFTER, such as 0,1; got %q", o.gens)
	}
	return before, after, nil
}

func diffGenerations(ctx context.Context, con *console, run string, o diffOptions, before, after int) error {
	s, err := con.connector().Read(ctx)
	if err != nil {
		return err
	}
	defer s.Close()
	record := analysis.New(s.Store).WithGaps(warnOfGap(con))
	var sides [2]*analysis.StepGeneration
	for i, gen := range []int{before, after} {
		if sides[i], err = record.StepGeneration(ctx, run, o.step, gen); err != nil {
			return runs.Missing(err)
		}
	}
	d := compare.OfGenerations(run, o.step, sides[0], sides[1])
	return con.show(d, d.Write)
}

// diffRuns compares whole runs.
func diffRuns(ctx context.Context, con *console, names []string) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	c, err := compare.Read(ctx, record, names)
	if err != nil {
		return runs.Missing(err)
	}
	return con.show(c, c.Write)
}
