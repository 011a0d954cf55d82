package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/export"
	"github.com/ropewalk/ropewalk/env/math"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/dataset"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

type evaluateOptions struct {
	environment, recipe, id, key string
	set, on                      []string
	samples, problems, maxTokens int
	debate, rounds               int
	aggressive                   bool
	order                        priorityOptions
}

func evaluateCommand(con *console) *cobra.Command {
	o := evaluateOptions{}
	cmd := &cobra.Command{
		Use:   "evaluate RUN[@STEP]|MODEL",
		Short: "measure a policy of a run, or a model, on held-out problems in any environment",
		Long: "evaluate starts the workflow EvaluateRun, which measures one policy. The evaluation has its own\n" +
			"record, which `runs`, `show`, `report`, `view`, `sql` and `verify` read as they read a training run.\n" +
			"STEP is the number of a step, latest (the default) or best; 0 is the policy before the first step.\n" +
			"The recipe is RUN's, with the given changes. MODEL is a Hugging Face folder as a path with a slash\n" +
			"(./model), a GGUF file, or an address (hf://OWNER/NAME, s3://BUCKET/KEY). It is stored once; its\n" +
			"recipe is --recipe, or has the defaults of --environment. MODEL is also URL#NAME: a model that a\n" +
			"server answers for, by OpenAI's chat completions.\n\n" +
			"It prints success, pass@k, pass^k, and success by level and type of task with 95% intervals, and the\n" +
			"score, exact match and F1 where the environment has them. If an earlier\n" +
			"evaluation was interrupted, the same command continues it. If it has finished, the command prints the\n" +
			"recorded result.",
		Example: "  ropewalk evaluate quickstart-s1-20260102-030405 --samples 16\n" +
			"  ropewalk evaluate quickstart-s1-20260102-030405@best --set evaluation.temperature=0.6\n" +
			"  ropewalk evaluate household-s1-20260102-030405@0 --problems 64 --set environment.settings.seen=false\n" +
			"  ropewalk evaluate hf://HuggingFaceTB/SmolLM2-135M-Instruct --recipe smollm2\n" +
			"  ropewalk evaluate ./model --on gsm8k/test.jsonl,hf://datasets/HuggingFaceH4/MATH-500\n" +
			"  ropewalk evaluate ./model --environment sokoban --set rollout.max_turns=15 --samples 8\n" +
			"  ropewalk evaluate https://api.openai.com/v1#gpt-5.2 --environment alfworld --key '${env:API_KEY}'\n" +
			"  ropewalk evaluate shop-s1-20260102-030405 --debate 3 --rounds 2 --aggressive",
		Args: exactly("RUN[@STEP]|MODEL"),
		RunE: func(cmd *cobra.Command, args []string) error { return evaluatePolicy(cmd, con, args[0], o) },
	}
	f := cmd.Flags()
	f.StringVar(&o.environment, "environment", "", "measure in this environment `NAME`, or on the "+
		"part of a mix with that label (default: the recipe's)")
	f.StringSliceVar(&o.on, "on", nil, "measure on the tasks of these files (docs/data.md), each with its figures, as "+
		"`FILE,…`; a model without --environment and --recipe answers in the environment chat, without tools")
	f.StringVar(&o.recipe, "recipe", "", "the recipe for a model: a file, or the `NAME` of a built-in one")
	f.StringVar(&o.key, "key", "", "`REFERENCE` to the secret for URL#NAME, such as ${env:API_KEY}, which the worker "+
		"resolves")
	setFlag(f, &o.set, "")
	f.IntVar(&o.samples, "samples", 0, "samples of each problem (default: the recipe's)")
	f.IntVar(&o.problems, "problems", 0, "held-out problems (default: the recipe's)")
	f.IntVar(&o.maxTokens, "max-tokens", 0, "longest episode in tokens, at most policy.max_positions (default: the "+
		"recipe's)")
	f.IntVar(&o.debate, "debate", 0, "let `N` agents of the policy debate each answer, or each action; N must be odd")
	f.IntVar(&o.rounds, "rounds", 3, "maximum number of rounds of a debate after the first one")
	f.BoolVar(&o.aggressive, "aggressive", false, "tell the agents to finish early and to accept a partial result")
	f.StringVar(&o.id, "run-id", "", "the name of the evaluation (default: derived from policy and recipe)")
	o.order.add(f)
	con.jsonFlag(cmd, atTheEnd)
	return cmd
}

// overrides are the changes of the recipe; --set comes last.
func (o evaluateOptions) overrides(ctx context.Context, given func(string) bool) ([]string, error) {
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
	if given("on") {
		files, err := o.files(ctx)
		if err != nil {
			return nil, err
		}
		set = append(set, files...)
		if !given("problems") {
			set = append(set, "evaluation.problems=1000000")
		}
	}
	if !given("debate") {
		for _, flag := range []string{"rounds", "aggressive"} {
			if given(flag) {
				return nil, badInput("--%s: belongs to a debate; add --debate N", flag)
			}
		}
		return append(set, o.set...), nil
	}
	set = append(set, fmt.Sprintf("evaluation.debate={agents: %d, rounds: %d, aggressive: %t}", o.debate, o.rounds,
		o.aggressive), "evaluation.greedy=false")
	return append(set, o.set...), nil
}

// files are the settings by which the tasks of --on are held out.
func (o evaluateOptions) files(ctx context.Context) ([]string, error) {
	for i, path := range o.on {
		if path == "" {
			return nil, badInput("--on: names an empty file")
		}
		if !dataset.Remote(path) {
			absolute, err := filepath.Abs(path)
			if err != nil {
				return nil, badInput("--on: %w", err)
			}
			o.on[i] = absolute
		}
	}
	const at = "environment.settings."
	set := []string{at + "train=" + strconv.Quote(o.on[0]), at + "held_out=" + strconv.Quote(strings.Join(o.on, ",")),
		at + "duplicates=first"}
	trained, err := dataset.Digest(ctx, o.on[0], false, remoteFiles)
	held := make([]string, len(o.on))
	for i, path := range o.on {
		if err == nil {
			held[i], err = dataset.Digest(ctx, path, true, remoteFiles)
		}
	}
	if err != nil {
		return nil, badInput("--on: %w", err)
	}
	digests := strings.Join(held, ",")
	if strings.Trim(digests, ",") == "" {
		digests = ""
	}
	return append(set, at+"train_sha256="+strconv.Quote(trained), at+"held_out_sha256="+strconv.Quote(digests),
		at+`columns=""`, at+`filter=""`), nil
}

// isFolder reports whether an argument is a path and no run: the names of runs have no slash.
func isFolder(arg string) bool {
	return strings.ContainsRune(arg, filepath.Separator) || arg == "." || arg == ".."
}

func evaluatePolicy(cmd *cobra.Command, con *console, policy string, o evaluateOptions) error {
	ctx, began := cmd.Context(), time.Now()
	if o.id != "" {
		if err := schema.CheckRunID(o.id); err != nil {
			return badInput("--run-id: %w", err)
		}
	}
	set, err := o.overrides(ctx, cmd.Flags().Changed)
	if err != nil {
		return err
	}
	priority, err := o.order.priority()
	if err != nil {
		return err
	}
	model, err := openModel(ctx, policy, o.key)
	if err != nil {
		return err
	}
	if model != nil && len(o.on) > 0 && o.environment == "" && o.recipe == "" {
		o.environment = math.Chat.Name
	}
	if model == nil && o.recipe != "" {
		return badInput("--recipe: a run has its own recipe, which --set changes; --recipe is for a model")
	}
	s, err := con.connector().Join(ctx, runs.NeedAll)
	if err != nil {
		return err
	}
	defer s.Close()
	var e runs.Evaluation
	if model != nil {
		e, err = modelPolicy(ctx, s, model, o)
	} else {
		e, err = chosenPolicy(ctx, analysis.New(s.Store), policy)
	}
	if err != nil {
		return err
	}
	e.Environment, e.Set, e.Run = o.environment, set, o.id
	ask, resolved, err := e.Start(time.Now())
	if err != nil {
		return err
	}
	ask.Priority = priority
	if err := canRun(policy, resolved); err != nil {
		return err
	}
	if done, err := runs.Measured(ctx, s.Store, ask); err != nil || done {
		if err != nil {
			return err
		}
		fmt.Fprintf(con.err, "run %s has measured this already; its record says:\n", ask.Request.Run)
		return printEvaluation(ctx, con, s, ask.Request.Run)
	}
	printAddresses(con, s)
	defer s.Hold(ask.Request.Run)()
	return following{console: con, cmd: cmd, session: s, began: began}.start(ask)
}

// evaluable is a model that is no run's.
type evaluable interface {
	// Evaluation describes an evaluation of the model, under a base's recipe or with an environment's defaults.
	Evaluation(base json.RawMessage) (runs.Evaluation, error)
}

// stored is a model that the command stores itself.
type stored interface {
	Put(ctx context.Context, objects store.Store, code string) (api.PolicyRef, error)
}

// openModel opens the model that an argument names; nil if it names a run.
func openModel(ctx context.Context, policy, key string) (evaluable, error) {
	switch hosted := runs.IsHosted(policy); {
	case hosted:
		return runs.OpenHosted(policy, key)
	case key != "":
		return nil, badInput("--key: is for a model as URL#NAME, got %s", policy)
	case runs.IsModel(policy):
		return runs.OpenModel(ctx, policy, modelFolder())
	case !isFolder(policy):
		return nil, nil
	}
	f, err := runs.OpenFolder(policy)
	if err == nil && f.Published {
		return runs.OpenModel(ctx, policy, "")
	}
	return f, err
}

// modelPolicy describes a model's evaluation. It stores the model of a folder that this program has written.
func modelPolicy(ctx context.Context, s *runs.Session, m evaluable, o evaluateOptions) (e runs.Evaluation,
	err error) {
	var base json.RawMessage
	switch {
	case o.recipe != "":
		name, text, err := readRecipe(o.recipe)
		if err != nil {
			return e, err
		}
		resolved, err := recipes.Resolve(name, text, nil, nil, nil)
		if err != nil {
			return e, badinput.Of(err)
		}
		base = json.RawMessage(resolved.JSON)
	case o.environment == "":
		return e, badInput("--environment: a model has no recipe: name an environment, or a --recipe")
	}
	if e, err = m.Evaluation(base); err != nil {
		return e, err
	}
	f, ok := m.(stored)
	if !ok {
		return e, nil
	}
	code, err := codeDigest()
	if err != nil {
		return e, err
	}
	e.Policy, err = f.Put(ctx, s.Store, code)
	return e, err
}

// folderAt reports whether a path is that of a folder.
func folderAt(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
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
		if folderAt(policy) {
			return e, badInput("%w; %s is a folder: write ./%s to evaluate the model in it", err, policy, policy)
		}
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
	e.Of = "run " + run
	e.Policy = api.PolicyRef{Manifest: chosen.Manifest, Digest: chosen.Digest, Step: chosen.Step}
	return e, view.Recipe(ctx, &e.Recipe)
}

// printEvaluation prints the figures of a recorded evaluation.
func printEvaluation(ctx context.Context, con *console, s *runs.Session, run string) error {
	record := analysis.New(s.Store)
	overview, err := record.Overview(ctx, run)
	if err != nil {
		return err
	}
	if len(overview.Evaluations) != 1 {
		return fmt.Errorf("read the evaluation of run %s: its record holds %d, want 1", run, len(overview.Evaluations))
	}
	policy, err := record.Evaluates(ctx, run)
	if err != nil {
		return err
	}
	return con.show(struct {
		Run        string              `json:"run_id"`
		Recipe     string              `json:"recipe"`
		Seed       uint64              `json:"seed"`
		Policy     api.PolicyRef       `json:"policy"`
		Evaluation analysis.Evaluation `json:"evaluation"`
	}{run, overview.Run.Recipe, overview.Run.Seed, policy, overview.Evaluations[0]}, overview.Write)
}
