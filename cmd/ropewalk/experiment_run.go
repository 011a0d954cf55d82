package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis/status"
	"github.com/ropewalk/ropewalk/experiment"
	"github.com/ropewalk/ropewalk/experiment/trials"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

func experimentRunCommand(con *console) *cobra.Command {
	results, dry := "", false
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "train the trials of an experiment that are not done, and compare the arms",
		Long: "run starts the workflow Experiment, which trains the trials, a few at once. A trial is one run; its\n" +
			"name follows from its recipe and seed, so that trials that are done are skipped, and those that were\n" +
			"interrupted go on. The result of each trial is written to a small file next to FILE as it ends.\n" +
			"`ropewalk pause` and `ropewalk cancel` take the experiment's name, and the trials' names.",
		Example: "  ropewalk experiment run experiments/quickstart.yaml --dry-run\n" +
			"  ropewalk experiment run experiments/quickstart.yaml",
		Args: exactly("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			o, err := openExperiment(args[0], results)
			if err != nil {
				return err
			}
			if dry {
				return o.dryRun(cmd.Context(), con)
			}
			return o.run(cmd, con)
		},
	}
	resultsFlag(cmd, &results)
	cmd.Flags().BoolVar(&dry, "dry-run", false, "list the trials, which are done or share a warm start or its "+
		"evaluation, and what the others take; start nothing")
	con.jsonFlag(cmd, atTheEnd)
	return cmd
}

// input is what the workflow gets. Runs with files of results are done for it.
func (o *opened) input() (in workflows.ExperimentInput, err error) {
	in = workflows.ExperimentInput{Name: o.id(), ExperimentFile: api.ExperimentFile{YAML: o.Text(), File: o.path,
		Recipes: o.sources, Known: map[string]json.RawMessage{}}}
	for _, t := range o.trials {
		r, err := experiment.ReadResult(o.results, t)
		if err != nil {
			return in, err
		}
		if r != nil && r.Done {
			if in.Known[t.Run], err = o.Ranked(r); err != nil {
				return in, err
			}
		}
	}
	return in, nil
}

// privileged are the digests of the recipes that name programs or secrets, by run.
func (o *opened) privileged() map[string]string {
	out := map[string]string{}
	for _, t := range o.trials {
		if len(t.Resolved.Recipe.Privileged()) > 0 {
			out[t.Run] = t.Resolved.Digest
		}
	}
	return out
}

// run runs the experiment and follows it to its end.
func (o *opened) run(cmd *cobra.Command, con *console) error {
	ctx := cmd.Context()
	in, err := o.input()
	if err != nil {
		return err
	}
	if len(in.Known) < len(o.trials) {
		if err := o.train(ctx, con, in); err != nil {
			return err
		}
	}
	observed, err := o.observe(ctx, con)
	if err != nil {
		return err
	}
	r := o.Report(observed)
	return con.render(r, r.Write)
}

// train has the workflow train what is not done.
func (o *opened) train(ctx context.Context, con *console, in workflows.ExperimentInput) error {
	names := []string{o.id()}
	for _, t := range o.trials {
		names = append(names, t.Run)
	}
	s, err := con.connector().Join(ctx, runs.NeedAll, names...)
	if err != nil {
		return err
	}
	defer s.Close()
	printAddresses(con, s)
	defer s.Hold(o.id())()
	joined, err := s.BeginExperiment(ctx, in, o.privileged())
	if err != nil {
		return err
	}
	fmt.Fprintf(con.err, "experiment   %s, %d trials, %d done\n", in.Name, len(o.trials), len(in.Known))
	if joined {
		o.note(con, "is already open; this command follows it")
	}
	live := &liveExperiment{opened: o, con: con, session: s, told: map[string]workflows.TrialState{}}
	last, parked, err := s.FollowExperiment(ctx, in.Name, func(state workflows.ExperimentState) error {
		return live.show(ctx, state)
	})
	switch {
	case err != nil && ctx.Err() != nil:
		return o.interrupted(ctx, con, s)
	case err != nil:
		return runs.Failure(err)
	case parked:
		waiting := []string{o.id()}
		if last.Parked == nil {
			waiting = last.Running()
		}
		for _, run := range waiting {
			fmt.Fprintf(con.err, "parked       %s waits for a decision: `ropewalk follow %s` says why, and "+
				"`ropewalk unpark %s` goes on\n", run, run, run)
		}
		return silentError{exitParked}
	}
	return failedTrials(con, last)
}

// interrupted ends the experiment on the local stack, which stops with this command.
func (o *opened) interrupted(ctx context.Context, con *console, s *runs.Session) error {
	if s.Local() {
		reason := "its command was interrupted"
		if err := s.End(ctx, o.id(), status.Interrupted, reason); err != nil {
			slog.Warn("end the interrupted experiment", "experiment", o.id(), "error", err)
		}
	}
	fmt.Fprintf(con.err, "\ninterrupted; everything committed is kept. The same command goes on: "+
		"ropewalk experiment run %s\n", o.path)
	return silentError{exitInterrupted}
}

// failedTrials is an error that names the trials that have failed.
func failedTrials(con *console, last workflows.ExperimentState) error {
	failed := 0
	for _, t := range last.Trials {
		if t.State == workflows.TrialFailed {
			failed++
			fmt.Fprintf(con.err, "failed       %s: %s\n", t.Run, t.Reason)
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d trials failed; the same command tries them again", failed, len(last.Trials))
	}
	return nil
}

// liveExperiment prints what changes, and writes the results of trials as they end.
type liveExperiment struct {
	*opened
	con     *console
	session *runs.Session
	told    map[string]workflows.TrialState
}

func (l *liveExperiment) show(ctx context.Context, state workflows.ExperimentState) error {
	if n := len(state.Trials); n > 0 && (n != len(l.trials) || state.Trials[n-1].Run != l.trials[n-1].Run) {
		return badInput("%s is open with other trials: end it first with `ropewalk cancel %s`, or name this one "+
			"otherwise", l.id(), l.id())
	}
	for _, t := range state.Trials {
		if l.told[t.Run] == t {
			continue
		}
		fresh := l.told[t.Run].State == ""
		l.told[t.Run] = t
		if t.State != workflows.TrialWaiting && !(fresh && t.State == workflows.TrialDone) {
			fmt.Fprintf(l.con.err, "%-8s  %s  %s, seed %d  %s\n", t.State, t.Run, t.Arm, t.Seed, t.Reason)
		}
		if t.State == workflows.TrialDone || t.State == workflows.TrialStopped {
			if err := l.keep(ctx, t.Run); err != nil {
				return err
			}
		}
	}
	return nil
}

// keep writes a trial's result, unless its file is there.
func (l *liveExperiment) keep(ctx context.Context, run string) error {
	for _, t := range l.trials {
		if t.Run != run {
			continue
		}
		if there, err := experiment.ReadResult(l.results, t); err != nil || there != nil && there.Done {
			return err
		}
		record, err := openRecord(l.con, l.session)
		if err != nil {
			return err
		}
		observed, err := trials.Reader{Record: record}.Observe(ctx, l.Outcomes, []experiment.Trial{t})
		if err != nil {
			return err
		}
		if observed[0].Result == nil {
			return errors.New("the record has no result of " + run)
		}
		return observed[0].Result.Write(l.results)
	}
	return nil
}
