package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/workflows"
)

type replayOptions struct {
	step          int
	from, through string
	set           []string
	check         bool
	json          bool
}

func (a *app) replayCommand() *cobra.Command {
	o := replayOptions{}
	cmd := &cobra.Command{
		Use:   "replay RUN",
		Short: "make reward, resample, advantage and buffer of a step again, or check that they come out the same",
		Long: "replay starts the workflow ReplayStage: it makes stages of a step again from what the step has\n" +
			"committed, with the settings that --set changes, in a generation of its own beside the step's. It\n" +
			"needs the record alone: Temporal may have forgotten the run.\n" +
			"With --check it makes these stages of all finished steps again in memory, compares the digests,\n" +
			"commits nothing, and exits with 1 if one differs.",
		Example: "  ropewalk replay quickstart-s1-20260102-030405 --step 3 --from reward\n" +
			"  ropewalk replay quickstart-s1-20260102-030405 --step 3 --from resample --set resample.roc.select=lowest\n" +
			"  ropewalk replay --check quickstart-s1-20260102-030405",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(cmd.Flags().Changed("step")); err != nil {
				return err
			}
			if o.check {
				return a.checkReplay(cmd.Context(), args[0], o.json)
			}
			return a.replay(cmd.Context(), args[0], o)
		},
	}
	cmd.Flags().IntVar(&o.step, "step", 0, "the `STEP` whose stages are made again")
	cmd.Flags().StringVar(&o.from, "from", "", "the first `STAGE`: reward, resample, advantage or buffer")
	cmd.Flags().StringVar(&o.through, "through", "", "the last `STAGE` (default: advantage, and buffer of a step that has a replay buffer)")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "change a field of the recipe that the stages read: `path=value` (repeatable)")
	cmd.Flags().BoolVar(&o.check, "check", false, "make all of the run's pure stages again in memory and compare")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object at the end")
	return cmd
}

// validate refuses bad options before anything is joined.
func (o replayOptions) validate(stepGiven bool) error {
	if o.check {
		if stepGiven || o.from != "" || o.through != "" || len(o.set) > 0 {
			return badInput("--check: makes all steps again as they were; leave out --step, --from, --through and --set")
		}
		return nil
	}
	if o.step < 1 {
		return badInput("--step: name a step, from 1 on")
	}
	if _, err := wire.Replayed(o.from, o.through); err != nil {
		return badInput("--%w", err)
	}
	return nil
}

func (a *app) replay(ctx context.Context, run string, o replayOptions) error {
	s, err := a.join(ctx, needServers)
	if err != nil {
		return err
	}
	defer s.close()
	input := workflows.ReplayStageInput{Run: run, Step: o.step, From: o.from, Through: o.through, Set: o.set}
	stages, _ := wire.Replayed(o.from, o.through) // checked before
	summary := fmt.Sprintf("replay %s of step %d of %s", strings.Join(stages, ", "), o.step, run)
	if len(o.set) > 0 {
		summary += " with " + strings.Join(o.set, ", ")
	}
	id := fmt.Sprintf("%s/replay/step=%d/%s", run, o.step, time.Now().UTC().Format("20060102-150405.000"))
	result, err := a.executeReplay(ctx, s, id, summary, input)
	if err != nil {
		return err
	}
	if o.json {
		return a.printJSON(result)
	}
	return a.printReplay(result)
}

// executeReplay runs ReplayStage to its end.
func (a *app) executeReplay(ctx context.Context, s *session, id, summary string, input workflows.ReplayStageInput) (workflows.ReplayStageResult, error) {
	var result workflows.ReplayStageResult
	run, err := s.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: id, TaskQueue: workflows.QueueCPU, StaticSummary: summary,
	}, workflows.ReplayStageName, input)
	if err != nil {
		return result, fmt.Errorf("start replay %s: %w", id, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- run.Get(ctx, &result) }()
	select {
	case err = <-ended:
	case <-s.lease.Done():
		return workflows.ReplayStageResult{}, fmt.Errorf("%w; mend the cause and start the replay again", s.lost())
	}
	if err != nil && ctx.Err() != nil {
		return result, a.leaveReplay(ctx, s, id)
	}
	return result, runError(err)
}

// leaveReplay ends an interrupted replay on the local stack, which ends with this command; on a
// server of the user's it goes on.
func (a *app) leaveReplay(ctx context.Context, s *session, id string) error {
	if !s.local() {
		fmt.Fprintf(a.err, "\ninterrupted; the replay goes on at the server as workflow %s\n", id)
		return silentError{exitInterrupted}
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if err := s.temporal.TerminateWorkflow(end, id, "", "interrupted"); err != nil {
		slog.Warn("end the interrupted replay", "workflow", id, "error", err)
	}
	fmt.Fprintln(a.err, "\ninterrupted; the run is as it was. The same command makes another generation")
	return silentError{exitInterrupted}
}

func (a *app) printReplay(r workflows.ReplayStageResult) error {
	fmt.Fprintf(a.out, "run %s, step %d: generation %d\n", r.Run, r.Step, r.Gen)
	for _, s := range r.Stages {
		fmt.Fprintf(a.out, "  %-9s  %s → %s  %s\n", s.Stage, shortDigest(s.Old), shortDigest(s.New), replayOutcome(s))
	}
	for _, s := range r.Stages {
		if s.Code != "" {
			fmt.Fprintf(a.out, "  the step was made by another program (%s)\n", shortDigest(s.Code))
			break
		}
	}
	_, err := fmt.Fprintf(a.out, "\nnext:\n  %s diff %s --step %d --gen 0,%d\n", os.Args[0], r.Run, r.Step, r.Gen)
	return err
}

func replayOutcome(s wire.StageComparison) string {
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

// shortDigest is a digest as keys hold it.
func shortDigest(digest string) string {
	if digest == "" {
		return "–               "
	}
	return digest[:min(16, len(digest))]
}
