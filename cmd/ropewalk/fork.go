package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/forks"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

func forkCommand(con *console) *cobra.Command {
	o, step, from := runOptions{}, 0, ""
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "start a run that shares the first steps of another one",
		Long: "fork starts a run that goes on after a finished step of another run, with that run's recipe and\n" +
			"other settings: other methods, data, engines or seeds. It copies nothing: the steps up to that one\n" +
			"are the other run's, which cannot be deleted before its forks, and which keeps the checkpoint. The\n" +
			"other run may be open, parked, done or a fork itself. The model and its tokenizer stay as they are.\n\n" +
			"With --from the fork begins within the next step: it has copies of what the other run has committed\n" +
			"of that step before the stage (the rollout, its tool calls …), and only what --set changes after\n" +
			"the stage is allowed.",
		Example: "  ropewalk fork quickstart-s1-20260102-030405-k3v9qa --step 40 --set optimizer.lr=1e-4\n" +
			"  ropewalk fork quickstart-s1-20260102-030405-k3v9qa --step 40 --set seed=2 --set steps=120\n" +
			"  ropewalk fork quickstart-s1-20260102-030405-k3v9qa --step 40 --from reward --set reward.fallback=true",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			f := schema.ForkPoint{Run: args[0], Step: step}
			resolved, err := forkRecipe(cmd.Context(), con, f, from, o.set)
			if err != nil {
				return err
			}
			ask, err := o.askFork(f, from, resolved, time.Now())
			if err != nil {
				return err
			}
			return trainRun(con, cmd, ask, o)
		},
	}
	cmd.Flags().IntVar(&step, "step", 0, "the last step that the runs share")
	cmd.Flags().StringVar(&from, "from", "", "the `STAGE` of the next step that the fork begins with: reward, "+
		"resample or advantage (default: the whole step)")
	setFlag(cmd.Flags(), &o.set, "")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the new run's name (default: recipe, seed, time and random letters)")
	if err := cmd.MarkFlagRequired("step"); err != nil {
		panic(err) // the flag is defined above
	}
	con.jsonFlag(cmd, atTheEnd)
	o.order.add(cmd.Flags())
	o.add(cmd.Flags(), "")
	return cmd
}

// forkRecipe resolves the recipe of a fork before anything starts. The workflow resolves it again.
func forkRecipe(ctx context.Context, con *console, f schema.ForkPoint, from string,
	set []string) (*recipes.Resolved, error) {
	s, err := con.connector().Read(ctx)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	at, err := forks.At(ctx, commit.New(s.Store), f)
	if err != nil {
		return nil, err
	}
	resolved, err := at.Resolve(set)
	if err != nil {
		return nil, err
	}
	if from != "" {
		if _, err := at.Part(ctx, from, set); err != nil {
			return nil, err
		}
	}
	if idle := resolved.Recipe.Idle(); len(idle) > 0 {
		return nil, badInput("%s", strings.Join(idle, "\n"))
	}
	return resolved, canRun(resolved.Recipe.Name, resolved)
}

// askFork names the run and describes its workflow.
func (o runOptions) askFork(f schema.ForkPoint, from string, r *recipes.Resolved, now time.Time) (runs.Start, error) {
	input := workflows.TrainRunInput{Run: o.id, Set: o.set, Fork: &f, ForkFrom: from}
	if o.id == "" {
		input.Run = runs.NewID(fmt.Sprintf("%s-s%d", r.Recipe.Name, r.Recipe.Seed), now)
	} else if err := schema.CheckRunID(o.id); err != nil {
		return runs.Start{}, badInput("--run-id: %w", err)
	}
	ask, err := runs.NewStart(input.Run, workflows.TrainRunName, "fork "+f.String(), r, "", input, now)
	if err != nil {
		return ask, err
	}
	ask.Fresh = o.id == ""
	ask.Priority, err = o.order.priority()
	return ask, err
}
