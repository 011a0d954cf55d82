package main

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/terminal"
	"github.com/ropewalk/ropewalk/workflows"
)

func pauseCommand(con *console) *cobra.Command {
	return steerCommand(con, workflows.UpdatePause, "pause a run before its next step")
}

func unpauseCommand(con *console) *cobra.Command {
	return steerCommand(con, workflows.UpdateUnpause, "continue a paused run")
}

func stopCommand(con *console) *cobra.Command {
	return steerCommand(con, workflows.UpdateStop, "stop a run after its current step, with the final evaluation")
}

// steerCommand makes the command for an update that takes no argument.
func steerCommand(con *console, update, short string) *cobra.Command {
	cmd := &cobra.Command{
		Use:     update + " RUN",
		Short:   short,
		Long:    strings.ToUpper(short[:1]) + short[1:] + ". Temporal's UI can send the same update, `" + update + "`.",
		Example: "  ropewalk " + update + " quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return steerRun(cmd.Context(), con, args[0], update)
		},
	}
	con.jsonFlag(cmd, oneObject)
	return cmd
}

func setCommand(con *console) *cobra.Command {
	var in workflows.SetInput
	var rate, temperature float64
	steps := 0
	cmd := &cobra.Command{
		Use:   "set RUN",
		Short: "change the learning rate, temperature or number of steps of a live run",
		Long: "set changes settings of a live run from its next step on. The changed recipe is committed, and\n" +
			"everything made under it names it, so the run's lineage shows which steps had which settings.",
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
			return steerRun(cmd.Context(), con, args[0], workflows.UpdateSet, in)
		},
	}
	cmd.Flags().Float64Var(&rate, "learning-rate", 0, "learning rate of the policy's optimiser")
	cmd.Flags().Float64Var(&temperature, "temperature", 0, "sampling temperature of rollouts")
	cmd.Flags().IntVar(&steps, "steps", 0, "number of steps of the whole run")
	con.jsonFlag(cmd, oneObject)
	return cmd
}

// steerRun sends an update to a live run and prints its answer.
func steerRun(ctx context.Context, con *console, run, update string, args ...any) error {
	if err := steerable(ctx, con, run, update); err != nil {
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedServers)
	if err != nil {
		return err
	}
	defer s.Close()
	var out workflows.Steered
	if err := s.Update(ctx, run, update, &out, args...); err != nil {
		return err
	}
	result := map[string]any{"run_id": run, "update": update, "step": out.Step, "what": out.What}
	return con.render(result, func(p *terminal.Printer) { p.Line("%s", out.What) })
}

// steerable refuses a run that takes no update, before any server starts for it.
func steerable(ctx context.Context, con *console, run, update string) error {
	known, err := lookUp(ctx, con, run)
	if err != nil || known.OnServer {
		return err
	}
	switch state := known.Run.State(); state.State {
	case status.Queued, status.Interrupted, status.Cancelled, status.Failed:
		return badInput("%s: run %s is %s, so it takes no update; go on with: %s", update, run, state, state.Next(run))
	case status.Done, status.StoppedEarly:
		return badInput("%s: run %s is %s, so it takes no update", update, run, state)
	}
	return nil // it waits in a server that does not run yet, or a reader cannot tell
}
