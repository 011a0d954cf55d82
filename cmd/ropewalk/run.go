package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

type runOptions struct {
	set    []string
	seed   uint64
	id     string
	dryRun bool
	twin   bool
	json   bool
}

func (a *app) runCommand() *cobra.Command {
	o := runOptions{}
	cmd := &cobra.Command{
		Use:   "run RECIPE",
		Short: "train a policy by a recipe and follow it",
		Long: "run starts the workflow TrainRun with a recipe, a YAML file or the name of a built-in one, and\n" +
			"shows it live. Without servers of your own it starts a local stack first.",
		Example: "  ropewalk run recipes/quickstart.yaml\n" +
			"  ropewalk run quickstart --seed 2 --set steps=20 --set optimizer.lr=1e-4\n" +
			"  ropewalk run presets/drgrpo --twin\n" +
			"  ropewalk run presets/sampo-alfworld --dry-run",
		Args: exactly("RECIPE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			input, resolved, err := o.resolve(cmd, args[0])
			if err != nil {
				return err
			}
			if o.dryRun {
				return a.dryRun(cmd.Context(), resolved, o.json)
			}
			if err := canRun(args[0], resolved); err != nil {
				return err
			}
			if input.Run == "" {
				input.Run = newRunID(resolved.Recipe, time.Now())
			}
			return a.train(cmd, input, o.json)
		},
	}
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "change a field of the recipe: `path=value` (repeatable)")
	cmd.Flags().Uint64Var(&o.seed, "seed", 0, "the run's seed (default: the recipe's)")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the run's name (default: recipe, seed and time)")
	cmd.Flags().BoolVar(&o.dryRun, "dry-run", false, "validate and print the resolved recipe and what of it cannot run yet, start nothing")
	cmd.Flags().BoolVar(&o.twin, "twin", false, "the same method in small: three steps on calc with the CPU engine; --set wins over it")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

// resolve reads and validates the recipe before anything starts. The workflow gets the recipe's
// text and resolves it again, so that it depends on no file of this machine.
func (o runOptions) resolve(cmd *cobra.Command, recipe string) (workflows.TrainRunInput, *recipes.Resolved, error) {
	input := workflows.TrainRunInput{Run: o.id, Set: o.set}
	if cmd.Flags().Changed("seed") {
		input.Seed = &o.seed
	}
	name, text, err := readRecipe(recipe)
	if err != nil {
		return input, nil, err
	}
	if text == "" {
		input.Recipe = name
	} else {
		input.RecipeYAML, input.RecipeFile = text, name
	}
	if o.twin {
		if input.Set, err = twinSet(cmd, name, text, o.set); err != nil {
			return input, nil, err
		}
	}
	resolved, err := recipes.Resolve(name, text, input.Set, input.Seed, nil)
	if err != nil {
		return input, nil, badInputError{err}
	}
	if resolved.Recipe.Environment.Imported() {
		return input, nil, badInput("%s: environment.name: %s holds imported solutions, which cannot be trained on; use `ropewalk import`", name, resolved.Recipe.Environment.Name)
	}
	if input.Run != "" {
		if err := schema.CheckRunID(input.Run); err != nil {
			return input, nil, badInput("--run-id: %w", err)
		}
	}
	return input, resolved, nil
}

// twinSet puts the overrides of a recipe's twin before the caller's.
func twinSet(cmd *cobra.Command, name, text string, set []string) ([]string, error) {
	of, err := recipes.Resolve(name, text, nil, nil, nil)
	if err != nil {
		return nil, badInputError{err}
	}
	if of.Recipe.Environment.Imported() {
		return nil, badInput("--twin: %s trains nothing: its trajectories are imported", name)
	}
	for _, note := range recipes.TwinNotes(&of.Recipe) {
		fmt.Fprintf(cmd.ErrOrStderr(), "the twin %s\n", note)
	}
	return append(recipes.Twin(&of.Recipe), set...), nil
}

// canRun refuses a recipe that asks for what is not built yet, with everything that is missing.
func canRun(name string, resolved *recipes.Resolved) error {
	planned := resolved.Recipe.Planned()
	if len(planned) == 0 {
		return nil
	}
	return badInput("%s: the recipe is valid and cannot run yet:\n%s", name, strings.Join(planned, "\n"))
}

// readRecipe returns the file's text, or no text for the name of a built-in recipe.
func readRecipe(recipe string) (name, text string, err error) {
	if _, ok := recipes.Source(recipe); ok {
		return recipe, "", nil
	}
	data, err := os.ReadFile(recipe)
	if errors.Is(err, fs.ErrNotExist) {
		return "", "", badInput("no recipe file %s; built in are: %s, and presets (`ropewalk methods`)", recipe, strings.Join(recipes.Builtin(), ", "))
	}
	if err != nil {
		return "", "", badInput("read recipe: %w", err)
	}
	if len(bytes.TrimSpace(data)) == 0 {
		return "", "", badInput("%s: holds no recipe", recipe)
	}
	return recipe, string(data), nil
}

func (a *app) dryRun(ctx context.Context, resolved *recipes.Resolved, asJSON bool) error {
	r := resolved.Recipe
	planned := r.Planned()
	engine, err := engineHere(ctx, &r)
	if err != nil {
		return err
	}
	if asJSON {
		return a.printJSON(map[string]any{"recipe": r.Name, "seed": r.Seed, "digest": resolved.Digest,
			"planned": append([]string{}, planned...), "engine": engine, "resolved": json.RawMessage(resolved.JSON)})
	}
	fmt.Fprintf(a.err, "recipe %s is valid: seed %d, %d steps of %d prompts × %d trajectories; digest %s\n",
		r.Name, r.Seed, r.Steps, r.Rollout.Prompts, r.Rollout.Oversample, resolved.Digest)
	for _, missing := range planned {
		fmt.Fprintf(a.err, "planned: %s\n", missing)
	}
	if r.Engine.Kind != recipes.EngineCPU {
		fmt.Fprintf(a.err, "engine %s\n", engine)
	}
	_, err = a.out.Write(resolved.JSON)
	return err
}

// newRunID names a run by its recipe, seed and start.
func newRunID(r recipes.Recipe, now time.Time) string {
	return fmt.Sprintf("%s-s%d-%s", r.Name, r.Seed, now.UTC().Format("20060102-150405"))
}

// train starts a run and follows it to its end.
func (a *app) train(cmd *cobra.Command, input workflows.TrainRunInput, asJSON bool) error {
	ctx := cmd.Context()
	started := time.Now()
	s, err := a.join(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	if input.Resume {
		if _, err := analysis.New(s.store).Run(ctx, input.Run); err != nil {
			return missing(err)
		}
	}
	a.printAddresses(s)
	if err := start(ctx, s.temporal, input); err != nil {
		return a.interruptible(ctx, s, input.Run, "ropewalk resume "+input.Run, err)
	}
	fmt.Fprintf(a.err, "run          %s\n", input.Run)
	return a.finishTraining(cmd, s, input.Run, started, asJSON)
}

// finishTraining follows a run to its end, or to where it parks, and reports.
func (a *app) finishTraining(cmd *cobra.Command, s *session, run string, started time.Time, asJSON bool) error {
	ctx := cmd.Context()
	result, err := a.follow(ctx, s, run)
	var parked parkedError
	if errors.As(err, &parked) {
		return a.parked(parked, asJSON)
	}
	if err != nil {
		return a.interruptible(ctx, s, run, "ropewalk resume "+run, runError(err))
	}
	report, err := s.report(ctx, run, result, time.Since(started))
	if err != nil {
		return err
	}
	a.printReport(report, s)
	if asJSON {
		return a.printJSON(report)
	}
	if a.resident {
		return a.keepUp(cmd, s)
	}
	return nil
}

// start starts TrainRun, or joins the one that is open under the run's name: a run that was
// interrupted is still open and goes on by itself once servers and worker are back.
func start(ctx context.Context, c client.Client, input workflows.TrainRunInput) error {
	summary := "train " + input.Recipe + input.RecipeFile
	if input.Resume {
		summary = "resume " + input.Run
	}
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: input.Run, TaskQueue: workflows.QueueCPU, StaticSummary: summary,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
	}, workflows.TrainRunName, input)
	if err != nil {
		return fmt.Errorf("start run %s: %w", input.Run, err)
	}
	return nil
}

// runError keeps of a failed workflow what its author wrote.
func runError(err error) error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if app.Type() == wire.FailBadInput {
			return badInput("%s", app.Message())
		}
		return errors.New(app.Message())
	}
	var ended *temporal.TerminatedError
	if temporal.IsCanceledError(err) || errors.As(err, &ended) {
		return errors.New("the run was ended from outside; `ropewalk resume` starts it again from the last committed stage")
	}
	return err
}

func (a *app) resumeCommand() *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "go on with a run from its last committed stage",
		Long: "resume follows the run if it is still open (an interrupted command leaves it open) and starts it\n" +
			"again otherwise. Stages that have committed are adopted, not done again.",
		Example: "  ropewalk resume quickstart-s1-20260102-030405",
		Args:    oneRun,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.train(cmd, workflows.TrainRunInput{Run: args[0], Resume: true}, asJSON)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

func (a *app) printJSON(v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encode result: %w", err)
	}
	_, err = fmt.Fprintf(a.out, "%s\n", text)
	return err
}
