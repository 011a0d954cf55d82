package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/runs"
)

type showOptions struct {
	step, group, n int
	byGroup        bool
	gen            generationFlag
}

func showCommand(con *console) *cobra.Command {
	o := showOptions{}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "summarise a run, or show a step's trajectories turn by turn",
		Long: "show prints a run's evaluations and finished steps. With --step it prints a few of the step's\n" +
			"trajectories turn by turn, with reward, advantage and the reason why each was kept or dropped: a\n" +
			"kept positive, a kept negative, one dropped for each reason, and so on. With --gen all it prints the\n" +
			"generation that the update consumed, then those of replays.",
		Example: "  ropewalk show quickstart-s1-20260102-030405\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 -n 6\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 --group 0",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.byGroup = cmd.Flags().Changed("group")
			if err := o.check(cmd.Flags().Changed("step")); err != nil {
				return err
			}
			return showRun(cmd.Context(), con, args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "show trajectories of this `STEP`")
	cmd.Flags().IntVar(&o.group, "group", 0, "only of this `GROUP` of the step")
	cmd.Flags().IntVarP(&o.n, "number", "n", 4, "number of trajectories")
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

func showRun(ctx context.Context, con *console, run string, o showOptions) error {
	s, record, err := readRecord(ctx, con)
	if err != nil {
		return err
	}
	defer s.Close()
	observed, err := con.connector().Observe(ctx, s, run)
	if err != nil {
		return err
	}
	record = record.WithGeneration(o.gen.Generation).WithServer(observed)
	if o.step == 0 {
		overview, err := record.Overview(ctx, run)
		if errors.Is(err, analysis.ErrNoRun) {
			if found, err := showRequest(ctx, con, record, run); found || err != nil {
				return err
			}
		}
		if err != nil {
			return runs.Missing(err)
		}
		if err := overview.Write(con.out); err != nil {
			return err
		}
		return showProperties(ctx, con, record, run)
	}
	choice := analysis.Choice{N: o.n, Group: analysis.AnyGroup}
	if o.byGroup {
		choice.Group = o.group
	}
	generations := []analysis.Generation{o.gen.Generation}
	if o.gen.Generation == analysis.AllGenerations {
		if generations, err = record.Generations(ctx, run, o.step); err != nil {
			return runs.Missing(err)
		}
	}
	for i, g := range generations {
		view, err := record.WithGeneration(g).Step(ctx, run, o.step, choice)
		if err != nil {
			return runs.Missing(err)
		}
		if i > 0 {
			fmt.Fprintf(con.out, "\n%s\n", strings.Repeat("═", 80))
		}
		if err := view.Write(con.out); err != nil {
			return err
		}
	}
	return nil
}

// showProperties prints what the run's world offers to the methods before training.
func showProperties(ctx context.Context, con *console, record *analysis.Record, run string) error {
	properties, found, err := record.Properties(ctx, run)
	if err != nil || !found {
		return err
	}
	return analysis.WriteProperties(con.out, properties)
}
