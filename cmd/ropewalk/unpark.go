package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/workflows"
)

type unparkOptions struct {
	retry, skip, abort bool
	timeout            time.Duration
	shardGroups        int
	temperature        float64
	maxTurnTokens      int
	detach, json       bool
}

func (a *app) unparkCommand() *cobra.Command {
	o := unparkOptions{}
	cmd := &cobra.Command{
		Use:   "unpark RUN --retry|--skip|--abort",
		Short: "decide how a parked run goes on",
		Long: "A stage that still fails after its retries parks its run: the workflow stays open and waits. unpark\n" +
			"runs the stage again (--retry), goes on without it where meaning is kept (--skip), or gives the run\n" +
			"up (--abort), and follows the run. Nothing that has committed is done again.",
		Example: "  ropewalk unpark quickstart-s1-20260102-030405 --retry\n" +
			"  ropewalk unpark quickstart-s1-20260102-030405 --retry --timeout 2h\n" +
			"  ropewalk unpark quickstart-s1-20260102-030405 --skip",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			update, input, err := o.decision(cmd)
			if err != nil {
				return err
			}
			return a.unpark(cmd, args[0], update, input, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.retry, "retry", false, "run the failed stage again")
	f.BoolVar(&o.skip, "skip", false, "go on without what failed; its rows are recorded as excluded")
	f.BoolVar(&o.abort, "abort", false, "give the run up: the workflow fails, what was committed is kept")
	f.DurationVar(&o.timeout, "timeout", 0, "with --retry: time limit of one attempt of the failed stage")
	f.IntVar(&o.shardGroups, "shard-groups", 0, "with --retry: groups in one shard, from this step on")
	f.Float64Var(&o.temperature, "temperature", 0, "with --retry: sampling temperature, from this step on")
	f.IntVar(&o.maxTurnTokens, "max-turn-tokens", 0, "with --retry: tokens of one response, from this step on")
	f.BoolVar(&o.detach, "detach", false, "do not follow the run (a local stack ends with the last command)")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

// decision reads the flags: the update and, for retry, what it changes.
func (o unparkOptions) decision(cmd *cobra.Command) (string, *workflows.RetryInput, error) {
	chosen := ""
	for _, c := range []struct {
		set  bool
		name string
	}{{o.retry, workflows.UpdateRetry}, {o.skip, workflows.UpdateSkip}, {o.abort, workflows.UpdateAbort}} {
		if c.set && chosen != "" {
			return "", nil, badInput("unpark: give one of --retry, --skip and --abort, not --%s and --%s", chosen, c.name)
		}
		if c.set {
			chosen = c.name
		}
	}
	if chosen == "" {
		return "", nil, badInput("unpark: give one of --retry, --skip and --abort")
	}
	in := &workflows.RetryInput{TimeoutSeconds: o.timeout.Seconds()}
	changed := false
	for _, c := range []struct {
		flag string
		set  func()
	}{
		{"timeout", func() {}},
		{"shard-groups", func() { in.ShardGroups = &o.shardGroups }},
		{"temperature", func() { in.Temperature = &o.temperature }},
		{"max-turn-tokens", func() { in.MaxTurnTokens = &o.maxTurnTokens }},
	} {
		if cmd.Flags().Changed(c.flag) {
			c.set()
			changed = true
		}
	}
	if chosen != workflows.UpdateRetry {
		if changed {
			return "", nil, badInput("unpark: --timeout, --shard-groups, --temperature and --max-turn-tokens belong to --retry")
		}
		return chosen, nil, nil
	}
	return chosen, in, nil
}

func (a *app) unpark(cmd *cobra.Command, run, update string, input *workflows.RetryInput, o unparkOptions) error {
	ctx := cmd.Context()
	started := time.Now()
	s, err := a.join(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	var args []any
	if input != nil {
		args = append(args, *input)
	}
	var out workflows.Decided
	if err := s.update(ctx, run, update, &out, args...); err != nil {
		return err
	}
	fmt.Fprintf(a.err, "%s: %s\n", out.Action, out.What)
	if o.detach || update == workflows.UpdateAbort {
		if o.json {
			return a.printJSON(map[string]any{"run_id": run, "action": out.Action, "what": out.What})
		}
		return nil
	}
	kind, err := s.workflowType(ctx, run)
	if err != nil {
		return err
	}
	if kind == workflows.ReprocessRunName {
		return a.finishImport(ctx, s, run, started, "ropewalk unpark "+run+" --retry", o.json)
	}
	return a.finishTraining(cmd, s, run, started, o.json)
}

// parkedError ends a command whose run waits for a person's decision; the run stays open.
type parkedError struct{ progress workflows.Progress }

func (e parkedError) Error() string {
	return fmt.Sprintf("run %s is parked: %s", e.progress.Run, e.progress.Parked.Failures[0])
}

// parkedReport is what a command prints with --json when its run has parked.
type parkedReport struct {
	Run    string            `json:"run_id"`
	Recipe string            `json:"recipe,omitempty"`
	Seed   uint64            `json:"seed"`
	Status string            `json:"status"`
	Step   int               `json:"step"`
	Steps  int               `json:"steps"` // planned
	Parked *workflows.Parked `json:"parked"`
}

// parked says what waits and what can be done, and ends the command with the exit code for it.
func (a *app) parked(e parkedError, asJSON bool) error {
	describeParked(a.err, e.progress)
	if asJSON {
		p := e.progress
		if err := a.printJSON(parkedReport{
			Run: p.Run, Recipe: p.Recipe, Seed: p.Seed, Status: "parked", Step: p.Step, Steps: p.Steps, Parked: p.Parked,
		}); err != nil {
			return err
		}
	}
	return silentError{exitParked}
}

func describeParked(w io.Writer, p workflows.Progress) {
	fmt.Fprintf(w, "\nparked at step %d (%s); the run stays open:\n", p.Step, p.Parked.Kind)
	for _, f := range p.Parked.Failures {
		fmt.Fprintf(w, "  %s\n", f)
	}
	fmt.Fprintf(w, "mend the cause, then one of:\n  ropewalk unpark %s --retry\n", p.Run)
	if p.Parked.NoSkip == "" {
		fmt.Fprintf(w, "  ropewalk unpark %s --skip     (%s)\n", p.Run, p.Parked.Skip)
	} else {
		fmt.Fprintf(w, "  (--skip cannot be done: %s)\n", p.Parked.NoSkip)
	}
	fmt.Fprintf(w, "  ropewalk unpark %s --abort    (what was committed is kept)\n", p.Run)
}
