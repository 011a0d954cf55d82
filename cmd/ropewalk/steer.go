package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/workflows"
)

// steerCommands are the updates of a live run that take no argument.
func (a *app) steerCommands() []*cobra.Command {
	return []*cobra.Command{
		a.steerCommand(workflows.UpdatePause, "pause a run before its next step"),
		a.steerCommand(workflows.UpdateUnpause, "go on with a paused run"),
		a.steerCommand(workflows.UpdateStop, "stop a run after the step that runs, with the final evaluation"),
	}
}

func (a *app) steerCommand(update, short string) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:     update + " RUN",
		Short:   short,
		Long:    short + ". It is the update `" + update + "` that Temporal's UI sends as well.",
		Example: "  ropewalk " + update + " quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.steer(cmd.Context(), args[0], update, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (a *app) setCommand() *cobra.Command {
	var in workflows.SetInput
	var rate, temperature float64
	steps, asJSON := 0, false
	cmd := &cobra.Command{
		Use:   "set RUN",
		Short: "change a live run's learning rate, temperature or number of steps",
		Long: "set changes settings of a live run from its next step on. The changed recipe is committed, and\n" +
			"everything made under it names it: the run's lineage tells which steps had which settings.",
		Example: "  ropewalk set quickstart-s1-20260102-030405 --learning-rate 1e-4 --steps 120",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("learning-rate") {
				in.LearningRate = &rate
			}
			if cmd.Flags().Changed("temperature") {
				in.Temperature = &temperature
			}
			if cmd.Flags().Changed("steps") {
				in.Steps = &steps
			}
			if in.LearningRate == nil && in.Temperature == nil && in.Steps == nil {
				return badInput("set: give --learning-rate, --temperature or --steps")
			}
			return a.steer(cmd.Context(), args[0], workflows.UpdateSet, asJSON, in)
		},
	}
	cmd.Flags().Float64Var(&rate, "learning-rate", 0, "learning rate of the policy's optimiser")
	cmd.Flags().Float64Var(&temperature, "temperature", 0, "sampling temperature of rollouts")
	cmd.Flags().IntVar(&steps, "steps", 0, "steps of the whole run")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

// steer sends an update to a live run and says what it answers.
func (a *app) steer(ctx context.Context, run, update string, asJSON bool, args ...any) error {
	s, err := a.join(ctx, needServers)
	if err != nil {
		return err
	}
	defer s.close()
	var out workflows.Steered
	if err := s.update(ctx, run, update, &out, args...); err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"run_id": run, "update": update, "step": out.Step, "what": out.What})
	}
	_, err = fmt.Fprintln(a.out, out.What)
	return err
}

// update sends an update to an open workflow and waits for its answer.
func (s *session) update(ctx context.Context, run, name string, out any, args ...any) error {
	if err := s.exists(ctx, run); err != nil {
		return err
	}
	handle, err := s.temporal.UpdateWorkflow(ctx, client.UpdateWorkflowOptions{
		WorkflowID: run, UpdateName: name, Args: args, WaitForStage: client.WorkflowUpdateStageCompleted,
	})
	if err == nil {
		err = handle.Get(ctx, out)
	}
	return updateError(run, name, err)
}

// updateError keeps of a refused update what its author wrote.
func updateError(run, name string, err error) error {
	if err == nil {
		return nil
	}
	var missing *serviceerror.NotFound
	if errors.As(err, &missing) {
		return badInput("%s: run %s is not open: it has ended, or nobody goes on with it (`ropewalk resume %s`)", name, run, run)
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) && slices.Contains([]string{wire.FailBadInput, ""}, app.Type()) {
		return badInput("%s", app.Message())
	}
	return fmt.Errorf("%s run %s: %w", name, run, err)
}
