package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"go.temporal.io/sdk/client"

	"bytes"

	"github.com/ropewalk/ropewalk/env/gsm8k"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/workflows"
)

// importReport is what `ropewalk import --json` prints.
type importReport struct {
	Run                 string  `json:"run_id"`
	Trajectories        int     `json:"trajectories"`
	ToolCalls           int     `json:"tool_calls"`
	RewardAgreement     float64 `json:"reward_agreement"`
	CalculatorAgreement float64 `json:"calculator_agreement"`
	RewardMean          float64 `json:"reward_mean"`
	Excluded            int     `json:"excluded"`
	Kept                int     `json:"kept"`
	BatchRows           int     `json:"batch_rows"`
	WallSeconds         float64 `json:"wall_seconds"`
}

type importOptions struct {
	recipe string
	set    []string
	id     string
	json   bool
}

func (a *app) importCommand() *cobra.Command {
	o := importOptions{}
	cmd := &cobra.Command{
		Use:   "import gsm8k-solutions FILE",
		Short: "turn other systems' solutions into trajectories and take them through the stages",
		Long: "import uploads FILE (JSON lines as grade-school-math publishes its model solutions) and starts the\n" +
			"workflow ReprocessRun: each calculator annotation becomes a tool call that really runs, then\n" +
			"reward, resample and advantage work on the trajectories.",
		Example: "  ropewalk import gsm8k-solutions example_model_solutions.jsonl",
		Args:    exactly("FORMAT", "FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if args[0] != "gsm8k-solutions" {
				return badInput("unknown format %q; there is gsm8k-solutions", args[0])
			}
			return a.importFile(cmd.Context(), args[1], o)
		},
	}
	cmd.Flags().StringVar(&o.recipe, "recipe", "gsm8k-offline", "recipe file or built-in recipe")
	cmd.Flags().StringArrayVar(&o.set, "set", nil, "change a field of the recipe: `path=value` (repeatable)")
	cmd.Flags().StringVar(&o.id, "run-id", "", "the run's name (default: import and time)")
	cmd.Flags().BoolVar(&o.json, "json", false, "print one JSON object at the end; progress goes to standard error")
	return cmd
}

func (a *app) importFile(ctx context.Context, file string, o importOptions) error {
	started := time.Now()
	data, err := os.ReadFile(file)
	if err != nil {
		return badInput("read solutions: %w", err)
	}
	if _, err := gsm8k.Read(bytes.NewReader(data)); err != nil {
		return badInput("%s: %w", file, err)
	}
	input := workflows.ReprocessInput{Run: o.id, Set: o.set, Format: "gsm8k-solutions"}
	name, text, err := readRecipe(o.recipe)
	if err != nil {
		return err
	}
	if text == "" {
		input.Recipe = name
	} else {
		input.RecipeYAML, input.RecipeFile = text, name
	}
	if input.Run == "" {
		input.Run = "import-" + started.UTC().Format("20060102-150405")
	}
	if err := schema.CheckRunID(input.Run); err != nil {
		return badInput("--run-id: %w", err)
	}
	s, err := a.join(ctx, needAll)
	if err != nil {
		return err
	}
	defer s.close()
	a.printAddresses(s)
	input.Digest = schema.Digest(data)
	input.Source = "imports/" + input.Digest + ".jsonl"
	if err := upload(ctx, s.store, input.Source, data); err != nil {
		return err
	}
	if err := startImport(ctx, s.temporal, input); err != nil {
		return err
	}
	return a.finishImport(ctx, s, input.Run, started, "ropewalk import gsm8k-solutions "+file+" --run-id "+input.Run, o.json)
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
	return a.printImport(result, time.Since(started), asJSON)
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

func (a *app) printImport(r workflows.ReprocessResult, wall time.Duration, asJSON bool) error {
	report := importReport{
		Run: r.Run, Trajectories: r.Trajectories, ToolCalls: r.ToolCalls, RewardMean: r.Reward, Excluded: r.Excluded, Kept: r.Kept, BatchRows: r.BatchRows,
		RewardAgreement: share(r.RewardAgreed, r.RewardCompared), CalculatorAgreement: share(r.CalculatorAgreed, r.CalculatorCompared),
		WallSeconds: wall.Seconds(),
	}
	w := a.err
	fmt.Fprintf(w, "run          %s\n", report.Run)
	fmt.Fprintf(w, "trajectories %d, tool calls %d\n", report.Trajectories, report.ToolCalls)
	fmt.Fprintf(w, "reward       mean %.3f; agrees with the source in %d of %d (%.2f%%)\n", report.RewardMean, r.RewardAgreed, r.RewardCompared, 100*report.RewardAgreement)
	fmt.Fprintf(w, "calculator   agrees with the annotations in %d of %d (%.2f%%)\n", r.CalculatorAgreed, r.CalculatorCompared, 100*report.CalculatorAgreement)
	if report.Excluded > 0 {
		fmt.Fprintf(w, "excluded     %d trajectories that the sandbox or the reward broke on: they have no reward and are in no mean\n", report.Excluded)
	}
	fmt.Fprintf(w, "batch        %d rows of %d kept trajectories, in %.1f s\n", report.BatchRows, report.Kept, report.WallSeconds)
	if asJSON {
		return a.printJSON(report)
	}
	return nil
}

func share(part, whole int) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
