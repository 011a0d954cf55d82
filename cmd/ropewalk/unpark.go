package main

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/workflows"
)

type unparkOptions struct {
	retry, skip, abort bool
	confirm            bool
	timeout            time.Duration
	shardGroups        int
	temperature        float64
	maxTurnTokens      int
	set                []string
	detach             bool
}

func unparkCommand(con *console) *cobra.Command {
	o := unparkOptions{}
	cmd := &cobra.Command{
		Use:   "unpark RUN --retry|--skip|--abort|--confirm",
		Short: "decide how a parked run continues",
		Long: "A stage that still fails after its retries parks its run: the workflow stays open and waits. unpark\n" +
			"runs the stage again (--retry), continues without it where that keeps the results meaningful\n" +
			"(--skip), or gives the run up (--abort), and then follows the run. Stages that have committed are\n" +
			"not repeated. On the local stack, a run that names programs or secrets parks as unconfirmed if no\n" +
			"command has started it; --confirm allows the programs and secrets and lets the run continue.",
		Example: "  ropewalk unpark quickstart-s1-20260102-030405 --retry\n" +
			"  ropewalk unpark quickstart-s1-20260102-030405 --retry --set evaluation.problems=60\n" +
			"  ropewalk unpark quickstart-s1-20260102-030405 --retry --timeout 2h\n" +
			"  ropewalk unpark quickstart-s1-20260102-030405 --skip\n" +
			"  ropewalk unpark from-the-ui --confirm",
		Args: oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			update, input, err := o.decision(cmd)
			if err != nil {
				return err
			}
			return unparkRun(con, cmd, args[0], update, input, o)
		},
	}
	f := cmd.Flags()
	f.BoolVar(&o.retry, "retry", false, "run the failed stage again")
	f.BoolVar(&o.skip, "skip", false, "continue without what failed; its rows are recorded as excluded")
	f.BoolVar(&o.abort, "abort", false, "give the run up: the workflow fails; what it has committed is kept")
	f.BoolVar(&o.confirm, "confirm", false, "let the run have the programs and secrets that its recipe names")
	f.DurationVar(&o.timeout, "timeout", 0, "with --retry: time limit of one attempt of the failed stage")
	f.IntVar(&o.shardGroups, "shard-groups", 0, "with --retry: groups in one shard, from this step on")
	f.Float64Var(&o.temperature, "temperature", 0, "with --retry: sampling temperature, from this step on")
	f.IntVar(&o.maxTurnTokens, "max-turn-tokens", 0, "with --retry: tokens of one response, from this step on")
	setFlag(f, &o.set, "with --retry: ")
	f.BoolVar(&o.detach, "detach", false, "do not follow the run (a local stack ends with the last command)")
	con.jsonFlag(cmd, atTheEnd)
	return cmd
}

// decision reads from the flags which update to send and, for a retry, the settings that it changes.
func (o unparkOptions) decision(cmd *cobra.Command) (string, *workflows.RetryInput, error) {
	chosen := ""
	for _, c := range []struct {
		set  bool
		name string
	}{{o.retry || o.confirm, workflows.UpdateRetry}, {o.skip, workflows.UpdateSkip}, {o.abort, workflows.UpdateAbort}} {
		if c.set && chosen != "" {
			return "", nil, badInput("unpark: give one of --retry, --skip, --abort and --confirm, not --%s and --%s",
				chosen, c.name)
		}
		if c.set {
			chosen = c.name
		}
	}
	if chosen == "" {
		return "", nil, badInput("unpark: give one of --retry, --skip, --abort and --confirm")
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
		{"set", func() { in.Set = o.set }},
	} {
		if cmd.Flags().Changed(c.flag) {
			c.set()
			changed = true
		}
	}
	if chosen != workflows.UpdateRetry {
		if changed {
			return "", nil, badInput("unpark: --timeout, --shard-groups, --temperature, --max-turn-tokens and --set " +
				"belong to --retry")
		}
		return chosen, nil, nil
	}
	return chosen, in, nil
}

func unparkRun(con *console, cmd *cobra.Command, run, update string, input *workflows.RetryInput,
	o unparkOptions) error {
	ctx := cmd.Context()
	started := time.Now()
	if err := steerable(ctx, con, run, "unpark"); err != nil {
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedAll, run)
	if err != nil {
		return err
	}
	defer s.Close()
	if !o.detach {
		defer s.Hold(run)()
	}
	if o.confirm {
		if err := s.Confirm(ctx, run, con.err); err != nil {
			return err
		}
	}
	var args []any
	if input != nil {
		args = append(args, *input)
	}
	var out workflows.Decided
	if err := s.Update(ctx, run, update, &out, args...); err != nil {
		return err
	}
	fmt.Fprintf(con.err, "%s: %s\n", out.Action, out.What)
	if o.detach || update == workflows.UpdateAbort {
		if con.asJSON {
			return con.printJSON(map[string]any{"run_id": run, "action": out.Action, "what": out.What})
		}
		return nil
	}
	kind, err := s.WorkflowType(ctx, run)
	if err != nil {
		return err
	}
	watch := following{console: con, cmd: cmd, session: s, began: started}
	if kind == workflows.ReprocessRunName {
		watch.again = "ropewalk unpark " + run + " --retry"
	}
	return watch.follow(run, kind)
}
