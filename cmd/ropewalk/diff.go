package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/diff"
)

type diffOptions struct {
	step int
	gens string
	json bool
	file string
}

func (a *app) diffCommand() *cobra.Command {
	o := diffOptions{}
	cmd := &cobra.Command{
		Use:   "diff RUN",
		Short: "show what changed between two generations of a step",
		Long: "diff compares rewards, selection and advantages of two generations of a step: generation 0 is what\n" +
			"the run made, `ropewalk replay` makes further ones. A stage that a generation has not made is the\n" +
			"step's own, which is said.",
		Example: "  ropewalk diff quickstart-s1-20260102-030405 --step 3 --gen 0,1\n" +
			"  ropewalk diff quickstart-s1-20260102-030405 --step 3 --gen 1,2 -o diff.html",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			before, after, err := o.check()
			if err != nil {
				return err
			}
			return a.diff(cmd.Context(), args[0], o, before, after)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "compare this `STEP`")
	cmd.Flags().StringVar(&o.gens, "gen", "0,1", "the two generations, `BEFORE,AFTER`")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object with the figures")
	cmd.Flags().StringVarP(&o.file, "output", "o", "", "write the difference as one HTML page to `FILE`")
	return cmd
}

// check refuses bad options before anything is joined.
func (o diffOptions) check() (before, after int, err error) {
	if o.step < 1 {
		return 0, 0, badInput("--step: name a step, from 1 on")
	}
	first, second, two := strings.Cut(o.gens, ",")
	before, errBefore := strconv.Atoi(strings.TrimSpace(first))
	after, errAfter := strconv.Atoi(strings.TrimSpace(second))
	if !two || errBefore != nil || errAfter != nil || before < 0 || after < 0 {
		return 0, 0, badInput("--gen: want two generations as BEFORE,AFTER, such as 0,1; got %q", o.gens)
	}
	return before, after, nil
}

func (a *app) diff(ctx context.Context, run string, o diffOptions, before, after int) error {
	var page *target
	if o.file != "" {
		var err error
		if page, err = a.target(o.file, fmt.Sprintf("%s-step%d-diff.html", run, o.step)); err != nil {
			return err
		}
		defer page.discard() // once it is kept there is nothing to discard
	}
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	record := analysis.New(s.store)
	var sides [2]diff.Side
	for i, gen := range []int{before, after} {
		g, err := record.StepGeneration(ctx, run, o.step, gen)
		if err != nil {
			return missing(err)
		}
		sides[i] = diff.Side{Gen: gen, From: g.From, Rewards: g.Rewards, Selection: g.Selection, Batch: g.Batch}
	}
	d := diff.Compute(run, o.step, sides[0], sides[1])
	if o.file != "" {
		if err := d.WritePage(page); err != nil {
			return fmt.Errorf("write %s: %w", page.name, err)
		}
		if err := page.keep(); err != nil {
			return err
		}
		fmt.Fprintf(a.err, "page         %s\n", page.name)
	}
	if o.json {
		return a.printJSON(d)
	}
	return d.Write(a.out)
}
