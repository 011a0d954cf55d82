package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

type importOptions struct {
	recipe string
	set    []string
	id     string
	json   bool
}

func (a *app) importCommand() *cobra.Command {
	o := importOptions{}
	cmd := &cobra.Command{
		Use:   "import FORMAT FILE",
		Short: "turn other systems' trajectories into the record's and take them through the stages",
		Long: "import uploads FILE and starts the workflow ReprocessRun, in which reward, resample and advantage\n" +
			"work on its trajectories. Formats:\n\n" +
			"  gsm8k-solutions  JSON lines as grade-school-math publishes its model solutions: each calculator\n" +
			"                   annotation becomes a tool call that really runs\n" +
			"  openai           conversations in OpenAI's chat format, a JSON list or JSON lines of\n" +
			"                   {\"messages\": […], \"reward\": 1, \"task_id\": …, \"trial\": …}, or tau-bench's results:\n" +
			"                   tool calls are recorded with the answers that the file holds; the items of a task\n" +
			"                   (without task_id: those with the same prompt) are one group; pass^k is printed",
		Example: "  ropewalk import gsm8k-solutions example_model_solutions.jsonl\n" +
			"  ropewalk import openai gpt-4o-airline.json --run-id airline",
		Args: exactly("FORMAT", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			format, err := importFormatOf(args[0])
			if err != nil {
				return err
			}
			return a.importFile(cmd.Context(), format, args[1], o)
		},
	}
	cmd.Flags().StringVar(&o.recipe, "recipe", "", "recipe file or built-in recipe (default: the format's: gsm8k-offline, openai-offline)")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "change a field of the recipe: `path=value` (repeatable)")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the run's name (default: import and time)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

func (a *app) importFile(ctx context.Context, format importFormat, file string, o importOptions) error {
	started := time.Now()
	data, err := os.ReadFile(file)
	if err != nil {
		return badInput("read %s: %w", format.what, err)
	}
	if err := format.check(data); err != nil {
		return badInput("%s: %w", file, err)
	}
	input, err := o.input(format, started)
	if err != nil {
		return err
	}
	s, err := a.join(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	a.printAddresses(s)
	input.Digest = schema.Digest(data)
	input.Source = format.source(input.Digest)
	if err := upload(ctx, s.store, input.Source, data); err != nil {
		return err
	}
	if err := startImport(ctx, s.temporal, input); err != nil {
		return err
	}
	return a.finishImport(ctx, s, input.Run, started, "ropewalk import "+format.name+" "+file+" --run-id "+input.Run, o.json)
}

// finishImport waits for an import's end, or until it parks, and reports.
func (a *app) finishImport(ctx context.Context, s *session, run string, started time.Time, goOn string, asJSON bool) error {
	result, err := a.awaitImport(ctx, s, run)
	var parked parkedError
	if errors.As(err, &parked) {
		return a.parked(parked, asJSON)
	}
	if err != nil {
		return a.interruptible(ctx, s, run, goOn, runError(err))
	}
	report, err := reportImport(ctx, s.store, result, time.Since(started))
	if err != nil {
		return err
	}
	return a.printImport(report, result, asJSON)
}

// awaitImport waits for an import's result; see follow about one that parks.
func (a *app) awaitImport(ctx context.Context, s *session, run string) (workflows.ReprocessResult, error) {
	waiting, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	go func() {
		tick := time.NewTicker(pollEvery)
		defer tick.Stop()
		for {
			select {
			case <-waiting.Done():
				return
			case <-tick.C:
				if p, err := progress(waiting, s.temporal, run); err == nil && p.Parked != nil && !a.resident {
					stop(parkedError{p})
				}
			}
		}
	}()
	var result workflows.ReprocessResult
	err := s.temporal.GetWorkflow(waiting, run, "").Get(waiting, &result)
	var parked parkedError
	if errors.As(context.Cause(waiting), &parked) {
		return result, parked
	}
	return result, err
}

// input checks the recipe and the run's name before anything starts.
func (o importOptions) input(format importFormat, now time.Time) (workflows.ReprocessInput, error) {
	input := workflows.ReprocessInput{Run: o.id, Set: o.set, Format: format.name}
	name, text, err := readRecipe(cmp.Or(o.recipe, format.recipe))
	if err != nil {
		return input, err
	}
	resolved, err := recipes.Resolve(name, text, o.set, nil, nil)
	if err != nil {
		return input, badInputError{err}
	}
	if e := resolved.Recipe.Environment.Name; e != format.name {
		return input, badInput("%s: environment.name: an import of format %s wants a recipe of that environment, got %s", name, format.name, e)
	}
	if err := canRun(name, resolved); err != nil {
		return input, err
	}
	if text == "" {
		input.Recipe = name
	} else {
		input.RecipeYAML, input.RecipeFile = text, name
	}
	if input.Run == "" {
		input.Run = "import-" + now.UTC().Format("20060102-150405")
	}
	if err := schema.CheckRunID(input.Run); err != nil {
		return input, badInput("--run-id: %w", err)
	}
	return input, nil
}

// upload stores the file under its digest; the same file is stored once.
func upload(ctx context.Context, objects store.Store, key string, data []byte) error {
	err := objects.PutIfAbsent(ctx, key, data)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("upload to %s: %w", key, err)
	}
	return nil
}

func startImport(ctx context.Context, c client.Client, input workflows.ReprocessInput) error {
	_, err := c.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID: input.Run, TaskQueue: workflows.QueueCPU, StaticSummary: "import " + input.Format,
	}, workflows.ReprocessRunName, input)
	if err != nil {
		return fmt.Errorf("start import %s: %w", input.Run, err)
	}
	return nil
}
