package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
)

type showOptions struct {
	step, group, n int
	byGroup        bool
	gen            generationFlag
}

func (a *app) showCommand() *cobra.Command {
	o := showOptions{}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "show a run at a glance, or a step's trajectories turn by turn",
		Long: "show prints a run's evaluations and finished steps. With --step it prints a few of the step's\n" +
			"trajectories turn by turn with reward, advantage and why each was kept or dropped: a kept\n" +
			"positive, a kept negative, one dropped for each reason, and so on. With --gen all what replays made\n" +
			"follows what the update consumed.",
		Example: "  ropewalk show quickstart-s1-20260102-030405\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 -n 6\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 --group 0",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.byGroup = cmd.Flags().Changed("group")
			if err := o.check(cmd.Flags().Changed("step")); err != nil {
				return err
			}
			return a.show(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "show trajectories of this `STEP`")
	cmd.Flags().IntVar(&o.group, "group", 0, "of this `GROUP` of the step alone")
	cmd.Flags().IntVarP(&o.n, "number", "n", 4, "how many trajectories")
	o.gen.add(cmd)
	return cmd
}

func (o *showOptions) check(stepGiven bool) error {
	switch {
	case stepGiven && o.step < 1:
		return badInput("--step: must be ≥ 1, got %d", o.step)
	case o.byGroup && !stepGiven:
		return badInput("--group: names a group of a step; add --step")
	case o.byGroup && o.group < 0:
		return badInput("--group: must be ≥ 0, got %d", o.group)
	case o.n < 1:
		return badInput("-n: must be ≥ 1, got %d", o.n)
	}
	return nil
}

func (a *app) show(ctx context.Context, run string, o showOptions) error {
	s, err := a.read(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	record, err := s.record()
	if err != nil {
		return err
	}
	record = record.WithGeneration(o.gen.Generation)
	if o.step == 0 {
		overview, err := record.Overview(ctx, run)
		if err != nil {
			return missing(err)
		}
		return overview.Write(a.out)
	}
	choice := analysis.Choice{N: o.n, Group: analysis.AnyGroup}
	if o.byGroup {
		choice.Group = o.group
	}
	generations := []analysis.Generation{o.gen.Generation}
	if o.gen.Generation == analysis.AllGenerations {
		if generations, err = record.Generations(ctx, run, o.step); err != nil {
			return missing(err)
		}
	}
	for i, g := range generations {
		view, err := record.WithGeneration(g).Step(ctx, run, o.step, choice)
		if err != nil {
			return missing(err)
		}
		if i > 0 {
			fmt.Fprintf(a.out, "\n%s\n", strings.Repeat("═", 80))
		}
		if err := view.Write(a.out); err != nil {
			return err
		}
	}
	return nil
}
