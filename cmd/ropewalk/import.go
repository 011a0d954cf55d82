package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/importing"
	"github.com/ropewalk/ropewalk/internal/runs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

type importOptions struct {
	recipe string
	set    []string
	id     string
}

func importCommand(con *console) *cobra.Command {
	o := importOptions{}
	cmd := &cobra.Command{
		Use:   "import FORMAT FILE",
		Short: "import trajectories of other systems and run the stages on them",
		Long: "import uploads FILE and starts the workflow ReprocessRun, which runs reward, resample and advantage\n" +
			"on its trajectories. Formats:\n\n" +
			"  openai  conversations in OpenAI's chat format, a JSON list or JSON lines of\n" +
			"          {\"messages\": […], \"reward\": 1, \"task_id\": …, \"trial\": …}, or\n" +
			"          tau-bench's results: tool calls are recorded with the answers in the file; the\n" +
			"          items of one task (without task_id: of one prompt) form a group; pass^k is printed.\n" +
			"          Preference pairs (chosen, rejected) are two items each, with the rewards 1 and 0\n\n" +
			"FILE is also CSV, Parquet, Arrow or a folder, and may be at s3://, https:// or hf://datasets/…, as\n" +
			"files of tasks are (docs/data.md).",
		Example: "  ropewalk import openai gpt-4o-airline.json --run-id airline",
		Args:    exactly("FORMAT", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := importing.CheckFormat(args[0]); err != nil {
				return err
			}
			return importFile(cmd, con, args[1], o)
		},
	}
	cmd.Flags().StringVar(&o.recipe, "recipe", "", "recipe file or built-in recipe (default: openai-offline)")
	setFlag(cmd.Flags(), &o.set, "")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the run's name (default: import, time and random letters)")
	con.jsonFlag(cmd, atTheEnd)
	return cmd
}

func importFile(cmd *cobra.Command, con *console, file string, o importOptions) error {
	ctx, began := cmd.Context(), time.Now()
	data, err := importing.Read(ctx, file, remoteFiles)
	if err != nil {
		return badInput("%w", err)
	}
	digest := schema.Digest(data)
	ask, err := o.ask(digest, began)
	if err != nil {
		return err
	}
	s, err := con.connector().Join(ctx, runs.NeedAll)
	if err != nil {
		return err
	}
	defer s.Close()
	printAddresses(con, s)
	if err := upload(ctx, s.Store, importing.Source(digest), data); err != nil {
		return err
	}
	defer s.Hold(ask.Request.Run)()
	again := "ropewalk import " + api.FormatOpenAI + " " + file + " --run-id " + ask.Request.Run
	return following{console: con, cmd: cmd, session: s, began: began, again: again}.start(ask)
}

// ask checks the recipe and the run's name before anything starts.
func (o importOptions) ask(digest string, now time.Time) (runs.Start, error) {
	input := workflows.ReprocessInput{
		Run: o.id, Set: o.set, Format: api.FormatOpenAI, Source: importing.Source(digest), Digest: digest,
	}
	name, text, err := readRecipe(cmp.Or(o.recipe, importing.Recipe))
	if err != nil {
		return runs.Start{}, err
	}
	resolved, err := recipes.Resolve(name, text, o.set, nil, nil)
	if err != nil {
		return runs.Start{}, badinput.Of(err)
	}
	if e := resolved.Recipe.Environment.Name; e != api.FormatOpenAI {
		return runs.Start{}, badInput("%s: environment.name: an import of format %s needs a recipe with that "+
			"environment, got %s", name, api.FormatOpenAI, e)
	}
	if err := canRun(name, resolved); err != nil {
		return runs.Start{}, err
	}
	if text == "" {
		input.Recipe = name
	} else {
		input.RecipeYAML, input.RecipeFile = text, name
	}
	if input.Run == "" {
		input.Run = runs.NewID("import", now)
	}
	if err := schema.CheckRunID(input.Run); err != nil {
		return runs.Start{}, badInput("--run-id: %w", err)
	}
	ask, err := runs.NewStart(input.Run, workflows.ReprocessRunName, "import "+api.FormatOpenAI, resolved, digest,
		input, now)
	ask.Fresh = o.id == ""
	return ask, err
}

// upload stores the file under its digest; the same file is stored once.
func upload(ctx context.Context, objects store.Store, key string, data []byte) error {
	err := objects.PutIfAbsent(ctx, key, data)
	if err != nil && !errors.Is(err, store.ErrExists) {
		return fmt.Errorf("upload to %s: %w", key, err)
	}
	return nil
}
