package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/schema"
)

type evaluateOptions struct {
	environment, id              string
	set                          []string
	samples, problems, maxTokens int
	json                         bool
}

func evaluateCommand(con *console) *cobra.Command {
	o := evaluateOptions{}
	cmd := &cobra.Command{
		Use:   "evaluate RUN[@STEP]",
		Short: "measure a policy of a run on held-out problems, in any environment",
		Long: "evaluate starts the workflow EvaluateRun, which measures one policy of RUN. It has a record of its\n" +
			"own, which `runs`, `show`, `report`, `view`, `sql` and `verify` read like a training's. STEP is the\n" +
			"number of a step, latest (the default) or best; 0 is the policy before the first step. The recipe is\n" +
			"RUN's, with the given changes. It prints success, pass@k, pass^k and success by level with 95%\n" +
			"intervals, and the score, exact match and F1 where the environment has them.",
		Example: "  ropewalk evaluate quickstart-s1-20260102-030405 --samples 16\n" +
			"  ropewalk evaluate quickstart-s1-20260102-030405@best --set evaluation.temperature=0.6\n" +
			"  ropewalk evaluate household-s1-20260102-030405@0 --problems 64 --set environment.split=unseen",
		Args: exactly("RUN[@STEP]"),
		RunE: func(cmd *cobra.Command, args []string) error { return evaluatePolicy(cmd, con, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.environment, "environment", "", "measure in this environment `NAME` (default: the recipe's)")
	f.StringArrayVar(&o.set, "set", nil, "change a field of the recipe: `path=value` (repeatable)")
	f.IntVar(&o.samples, "samples", 0, "samples of each problem (default: the recipe's)")
	f.IntVar(&o.problems, "problems", 0, "held-out problems (default: the recipe's)")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "longest episode in tokens, at most the model's positions (default: the "+
		"recipe's)")
	f.StringVar(&o.id, "run-id", "", "the name of the evaluation (default: evaluate, time and random letters)")
	f.BoolVar(&o.json, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

// overrides are the changes of the recipe; --set comes last.
func (o evaluateOptions) overrides(given func(string) bool) []string {
	var set []string
	for _, f := range []struct {
		flag, path string
		value      int
	}{
		{"samples", "evaluation.samples", o.samples}, {"problems", "evaluation.problems", o.problems},
		{"max-tokens", "rollout.max_tokens", o.maxTokens},
	} {
		if given(f.flag) {
			set = append(set, fmt.Sprintf("%s=%d", f.path, f.value))
		}
	}
	return append(set, o.set...)
}

func evaluatePolicy(cmd *cobra.Command, con *console, policy string, o evaluateOptions) error {
	ctx := cmd.Context()
	if o.id != "" {
		if err := schema.CheckRunID(o.id); err != nil {
			return badInput("--run-id: %w", err)
		}
	}
	s, err := con.connector().Join(ctx, runs.NeedAll)
	if err != nil {
		return err
	}
	defer s.Close()
	e, err := chosenPolicy(ctx, analysis.New(s.Store), policy)
	if err != nil {
		return err
	}
	e.Environment, e.Set, e.Run = o.environment, o.overrides(cmd.Flags().Changed), o.id
	ask, resolved, err := e.Start(time.Now())
	if err != nil {
		return err
	}
	if err := canRun(policy, resolved); err != nil {
		return err
	}
	printAddresses(con, s)
	defer s.Hold(ask.Request.Run)()
	return startEvaluation(ctx, con, s, ask, o.json)
}

// chosenPolicy reads the policy that RUN@STEP names, and its recipe.
func chosenPolicy(ctx context.Context, record *analysis.Record, policy string) (e runs.Evaluation, err error) {
	run, which, _ := strings.Cut(policy, "@")
	if which == "" {
		which = export.Latest
	}
	if err := schema.CheckRunID(run); err != nil {
		return e, badinput.Of(err)
	}
	view, err := record.Visible(ctx, run)
	if err != nil {
		return e, runs.Missing(err)
	}
	all, err := view.Checkpoints(ctx)
	if err != nil {
		return e, err
	}
	chosen, err := export.Choose(run, which, all)
	if errors.Is(err, export.ErrNoCheckpoint) {
		return e, badInput("%s: %w", policy, err)
	}
	if err != nil {
		return e, err
	}
	e.Of = run
	e.Policy = api.PolicyRef{Manifest: chosen.Manifest, Digest: chosen.Digest, Step: chosen.Step}
	return e, view.Recipe(ctx, &e.Recipe)
}

// startEvaluation starts an evaluation of its own and follows it to its end.
func startEvaluation(ctx context.Context, con *console, s *runs.Session, ask runs.Start, asJSON bool) error {
	run := ask.Request.Run
	b, err := s.Begin(ctx, ask)
	if err != nil {
		return orInterrupted(ctx, con, s, run, "ropewalk resume "+run, err)
	}
	printBegun(con, run, b)
	return s.DropRefused(ctx, run, finishEvaluation(ctx, con, s, run, asJSON))
}

// finishEvaluation follows an evaluation until it ends or parks, and prints its figures.
func finishEvaluation(ctx context.Context, con *console, s *runs.Session, run string, asJSON bool) error {
	result, err := s.FollowEvaluation(ctx, run, runs.NewProgressView(con.err, con.terminal), con.resident)
	var parked runs.ParkedError
	if errors.As(err, &parked) {
		return reportParked(con, parked, asJSON)
	}
	if err != nil {
		return orInterrupted(ctx, con, s, run, "ropewalk resume "+run, runs.Failure(err))
	}
	overview, err := analysis.New(s.Store).Overview(ctx, run)
	if err != nil {
		return err
	}
	if len(overview.Evaluations) != 1 {
		return fmt.Errorf("read the evaluation of run %s: its record holds %d, want 1", run, len(overview.Evaluations))
	}
	if asJSON {
		return con.printJSON(struct {
			Run        string              `json:"run_id"`
			Recipe     string              `json:"recipe"`
			Seed       uint64              `json:"seed"`
			Policy     api.PolicyRef       `json:"policy"`
			Evaluation analysis.Evaluation `json:"evaluation"`
		}{run, result.Recipe, result.Seed, result.Policy, overview.Evaluations[0]})
	}
	return overview.Write(con.out)
}
