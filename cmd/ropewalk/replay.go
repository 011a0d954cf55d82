package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

type replayOptions struct {
	step          int
	steps         string // instead of step: A-B
	from, through string
	set           []string
	check         bool
	noEvaluation  bool
}

func replayCommand(con *console) *cobra.Command {
	o := replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "repeat stages of a step with other settings, its update too, or check that they are reproducible",
		Long: "replay starts the workflow ReplayStage: it repeats stages of a step from what the step has\n" +
			"committed, with the settings that --set changes, and commits the results as a new generation of the\n" +
			"step. It needs only the record; Temporal may have forgotten the run. A Python reward that is new\n" +
			"or has changed is called with the recorded trajectories.\n\n" +
			"With --through update it also trains the policy that the step began with on the repeated batch, which\n" +
			"needs the run's engine. It commits the counterfactual policy in the new generation, where no step\n" +
			"goes on with it. Then it compares it with the run's own policy after the step: the estimated\n" +
			"KL(counterfactual ‖ own) over the tokens of the step's rollout, and the success of both on held-out\n" +
			"problems.\n\n" +
			"With --check it repeats reward, resample, advantage and buffer of all finished steps in memory and\n" +
			"compares the digests. It then starts no server, writes nothing, and exits with 1 if a digest differs.",
		Example: "  ropewalk replay quickstart-s1-20260102-030405 --step 3 --from reward\n" +
			"  ropewalk replay quickstart-s1-20260102-030405 --step 3 --from resample --set " +
			"resample.roc.select=lowest\n" +
			"  ropewalk replay quickstart-s1-20260102-030405 --steps 1-85 --from advantage --set " +
			"advantage.std=false\n" +
			"  ropewalk replay quickstart-s1-20260102-030405 --step 3 --from reward --through update --set " +
			"loss.clip_high=0.2\n" +
			"  ropewalk replay --check quickstart-s1-20260102-030405",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			first, last, err := o.validate(cmd.Flags().Changed("step"))
			if err != nil {
				return err
			}
			if o.check {
				return checkReplay(cmd.Context(), con, args[0])
			}
			return replaySteps(cmd.Context(), con, args[0], first, last, o)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "the `STEP` whose stages are repeated")
	cmd.Flags().StringVar(&o.steps, "steps", "", "the steps `A-B`, both included, one after the other")
	cmd.Flags().StringVar(&o.from, "from", "", "the first `STAGE`: reward, resample, advantage, buffer or update")
	cmd.Flags().StringVar(&o.through, "through", "", "the last `STAGE`; update trains a counterfactual policy "+
		"(default: advantage, or buffer if the step has a replay buffer)")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "change a field of the recipe that the stages read: `path=value` "+
		"(repeatable)")
	cmd.Flags().BoolVar(&o.noEvaluation, "no-evaluation", false, "leave out the held-out problems after an update")
	cmd.Flags().BoolVar(&o.check, "check", false, "repeat all pure stages of the run in memory and compare the results")
	con.jsonFlag(cmd, oneObject+" at the end")
	return cmd
}

// validate refuses bad options before the servers are needed. It returns the first and the last step.
func (o replayOptions) validate(stepGiven bool) (first, last int, err error) {
	if o.check {
		if stepGiven || o.steps != "" || o.from != "" || o.through != "" || len(o.set) > 0 || o.noEvaluation {
			return 0, 0, badInput("--check: repeats all steps as they were; leave out --step, --steps, --from, " +
				"--through, --set and --no-evaluation")
		}
		return 0, 0, nil
	}
	first, last = o.step, o.step
	switch {
	case stepGiven && o.steps != "":
		return 0, 0, badInput("--steps: is instead of --step")
	case o.steps != "":
		if first, last, err = stepRange(o.steps); err != nil {
			return 0, 0, err
		}
	case o.step < 1:
		return 0, 0, badInput("--step: name a step, 1 or later")
	}
	stages, err := api.Replayed(o.from, o.through)
	if err != nil {
		return 0, 0, badInput("--%w", err)
	}
	if o.noEvaluation && !slices.Contains(stages, schema.StageUpdate) {
		return 0, 0, badInput("--no-evaluation: only a replay through update evaluates")
	}
	return first, last, nil
}

// replaySteps replays steps one after the other. One that the record shows to be impossible is refused before any
// server starts.
func replaySteps(ctx context.Context, con *console, run string, first, last int, o replayOptions) error {
	if err := refusedReplay(ctx, con, run, first, last, o); err != nil {
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedServers)
	if err != nil {
		return err
	}
	defer s.Close()
	var all []workflows.ReplayStageResult
	for step := first; step <= last; step++ {
		result, err := replayStep(ctx, con, s, run, step, o)
		if err != nil {
			return err
		}
		all = append(all, result)
		if !con.asJSON {
			printReplay(con, result)
		}
	}
	switch {
	case con.asJSON && o.steps == "":
		return con.printJSON(all[0])
	case con.asJSON:
		return con.printJSON(map[string]any{"replays": all})
	case o.steps == "":
		_, err = fmt.Fprintf(con.out, "\nnext:\n  %s diff %s --step %d --gen 0,%d\n", os.Args[0], run, first,
			all[0].Gen)
	}
	return err
}

func replayStep(ctx context.Context, con *console, s *runs.Session, run string, step int,
	o replayOptions) (workflows.ReplayStageResult, error) {
	input := workflows.ReplayStageInput{Run: run, Step: step, From: o.from, Through: o.through, Set: o.set,
		NoEvaluation: o.noEvaluation}
	stages, _ := api.Replayed(o.from, o.through) // checked before
	summary := fmt.Sprintf("replay %s of step %d of %s", strings.Join(stages, ", "), step, run)
	if len(o.set) > 0 {
		summary += " with " + strings.Join(o.set, ", ")
	}
	id := fmt.Sprintf("%s/replay/step=%d/%s", run, step, time.Now().UTC().Format("20060102-150405.000"))
	result, err := s.Replay(ctx, id, summary, input)
	if err != nil {
		err = orLeftReplay(ctx, con, s, id, err)
	}
	return result, err
}

// refusedReplay refuses replays that the record shows to be impossible.
func refusedReplay(ctx context.Context, con *console, run string, first, last int, o replayOptions) error {
	s, reader, err := openReader(ctx, con, run)
	if err != nil {
		return err
	}
	defer s.Close()
	stages, _ := api.Replayed(o.from, o.through) // checked before
	for step := first; step <= last; step++ {
		if err := runs.Failure(reader.CheckReplay(ctx, api.ReplayInput{Run: run, Step: step, Stages: stages, Set: o.set,
			Follow: o.through == ""})); err != nil {
			return err
		}
	}
	return nil
}

// orLeftReplay returns err, unless the command was interrupted: it then ends the replay on the local stack, which stops
// with this command. On the user's own server the replay goes on.
func orLeftReplay(ctx context.Context, con *console, s *runs.Session, id string, err error) error {
	if ctx.Err() == nil {
		return err
	}
	if !s.Local() {
		fmt.Fprintf(con.err, "\ninterrupted; the replay goes on at the server as workflow %s\n", id)
		return silentError{exitInterrupted}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.Temporal.TerminateWorkflow(end, id, "", "interrupted"); err != nil {
		slog.Warn("end the interrupted replay", "workflow", id, "error", err)
	}
	fmt.Fprintln(con.err, "\ninterrupted; the run is unchanged. The same command makes another generation")
	return silentError{exitInterrupted}
}

func printReplay(con *console, r workflows.ReplayStageResult) {
	fmt.Fprintf(con.out, "run %s, step %d: generation %d\n", r.Run, r.Step, r.Gen)
	for _, s := range r.Stages {
		fmt.Fprintf(con.out, "  %-9s  %s → %s  %s\n", s.Stage, shortDigest(s.Old), shortDigest(s.New), replayOutcome(s))
	}
	for _, s := range r.Stages {
		if s.Code != "" {
			fmt.Fprintf(con.out, "  the step was made by another program (%s)\n", shortDigest(s.Code))
			break
		}
	}
	if r.Impure != "" {
		fmt.Fprintf(con.out, "  not pure: %s\n", r.Impure)
	}
	if r.Update != nil {
		fmt.Fprintf(con.out, "  %s\n", strings.Join(r.Update.Lines(), "\n  "))
	}
}

func replayOutcome(s api.StageComparison) string {
	switch {
	case s.Same:
		return "same"
	case s.Old == "":
		return "made for the first time"
	case s.Shards == 1:
		return "changed"
	}
	return fmt.Sprintf("changed in %d of %d shards", s.Differs, s.Shards)
}

// shortDigest shortens a digest as keys do.
func shortDigest(digest string) string {
	if digest == "" {
		return "–               "
	}
	return digest[:min(16, len(digest))]
}
