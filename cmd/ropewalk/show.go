package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/recipes"
)

type showOptions struct {
	step, group, n int
	byGroup        bool
	evaluation     bool
	gen            generationFlag
}

func showCommand(con *console) *cobra.Command {
	o := showOptions{}
	cmd := &cobra.Command{
		Use:   "show RUN",
		Short: "summarise a run, or show a step's trajectories turn by turn",
		Long: "show prints a run's evaluations, its finished steps, the changes of its recipe with who asked for\n" +
			"them, and what the run has used. With --step it prints a few of the step's trajectories turn by turn,\n" +
			"with reward, advantage and the reason why each was kept or dropped: a kept positive, a kept negative,\n" +
			"one dropped for each reason, and so on. With --gen all it prints the generation that the update\n" +
			"consumed, then those of replays.\n\n" +
			"With --evaluation it prints episodes of the latest evaluation, or of the one after --step: a solved\n" +
			"one, a failed one, and so on. Step 0 is the evaluation before the first step.",
		Example: "  ropewalk show quickstart-s1-20260102-030405\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 -n 6\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --step 3 --group 0\n" +
			"  ropewalk show quickstart-s1-20260102-030405 --evaluation",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.byGroup = cmd.Flags().Changed("group")
			if err := o.check(cmd.Flags().Changed("step")); err != nil {
				return err
			}
			if o.evaluation && !cmd.Flags().Changed("step") {
				o.step = analysis.LastEvaluation
			}
			return showRun(cmd.Context(), con, args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "show trajectories of this `STEP`")
	cmd.Flags().IntVar(&o.group, "group", 0, "only of this `GROUP` of the step")
	cmd.Flags().BoolVar(&o.evaluation, "evaluation", false, "show episodes of an evaluation")
	cmd.Flags().IntVarP(&o.n, "number", "n", 4, "number of trajectories")
	o.gen.add(cmd)
	return cmd
}

func (o *showOptions) check(stepGiven bool) error {
	switch {
	case o.evaluation && o.step < 0:
		return badInput("--step: must be ≥ 0, got %d", o.step)
	case stepGiven && !o.evaluation && o.step < 1:
		return badInput("--step: must be ≥ 1, got %d", o.step)
	case o.byGroup && !stepGiven && !o.evaluation:
		return badInput("--group: names a group of a step; add --step")
	case o.evaluation && o.gen.Generation == analysis.AllGenerations:
		return badInput("--gen all: an evaluation has one generation")
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
	choice := analysis.Choice{N: o.n, Group: analysis.AnyGroup}
	if o.byGroup {
		choice.Group = o.group
	}
	if o.evaluation {
		return showEvaluation(ctx, con, record, run, o.step, choice)
	}
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
		if overview.Before, err = record.Properties(ctx, run); err != nil {
			return err
		}
		if err := overview.Write(con.out); err != nil {
			return err
		}
		if err := showWorlds(ctx, con, record, run); err != nil {
			return err
		}
		amendments, err := record.Amendments(ctx, run)
		if err != nil {
			return err
		}
		for _, a := range amendments {
			fmt.Fprintf(con.out, "the recipe was changed %s\n", a)
		}
		cold, err := record.ColdStart(ctx, run)
		if err != nil {
			return err
		}
		if cold != nil {
			fmt.Fprintln(con.out)
			analysis.WriteColdStart(con.out, *cold)
		}
		return showCost(ctx, con, record, run)
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

// showWorlds says which worlds the run's environments are.
func showWorlds(ctx context.Context, con *console, record *analysis.Record, run string) error {
	v, err := record.Visible(ctx, run)
	if err != nil {
		return err
	}
	var recipe struct {
		Environment recipes.Environment `json:"environment"`
	}
	if err := v.Recipe(ctx, &recipe); err != nil {
		return err
	}
	if f := v.Fork(); f.Run != "" {
		fmt.Fprintf(con.out, "a fork of run %s: steps 1 to %d are its\n", f.Run, f.Step)
	}
	for _, world := range recipe.Environment.Worlds() {
		fmt.Fprintln(con.out, "the environment "+world)
	}
	return nil
}

// showEvaluation prints episodes of an evaluation.
func showEvaluation(ctx context.Context, con *console, record *analysis.Record, run string, step int,
	choice analysis.Choice) error {
	view, err := record.Evaluation(ctx, run, step, choice)
	if errors.Is(err, analysis.ErrNoEvaluation) {
		return badInput("--evaluation: %v", err)
	}
	if err != nil {
		return runs.Missing(err)
	}
	return view.Write(con.out)
}

// showCost prints what the run has used.
func showCost(ctx context.Context, con *console, record *analysis.Record, run string) error {
	cost, err := record.Cost(ctx, run)
	if err != nil {
		return err
	}
	fmt.Fprintln(con.out)
	return cost.Write(con.out)
}
