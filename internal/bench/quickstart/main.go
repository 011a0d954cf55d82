// Command quickstart measures the main job: it trains the quickstart recipe with three seeds, one after the other,
// through the real servers, and compares the outcome with the requirements.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
)

type rate struct {
	Success float64 `json:"success"`
	Low     float64 `json:"ci_low"`
	High    float64 `json:"ci_high"`
	N       int     `json:"n"`
}

type evaluation struct {
	rate
	Greedy     float64         `json:"greedy"`
	ByLevel    map[string]rate `json:"by_level"`
	ToolErrors float64         `json:"tool_error_rate_positives"`
}

// outcome is what `ropewalk run --json` prints, as far as this program reads it.
type outcome struct {
	Run              string             `json:"run_id"`
	Seed             int                `json:"seed"`
	Warm             evaluation         `json:"warm_start"`
	Final            evaluation         `json:"final"`
	RLSeconds        float64            `json:"rl_seconds"`
	WarmStartSeconds float64            `json:"warm_start_seconds"`
	EvalSeconds      float64            `json:"eval_seconds"`
	StageSeconds     map[string]float64 `json:"stage_seconds"`
	Orchestration    float64            `json:"orchestration_share"`
	PeakMB           float64            `json:"peak_rss_mb"`
	Digest           string             `json:"checkpoint_digest"`
	// Curve is the success rate of each step's rollouts.
	Curve []float64 `json:"curve"`
}

func main() { bench.Main("quickstart", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("quickstart", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/quickstart.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	recipe := flags.String("recipe", "recipes/quickstart.yaml", "the recipe")
	seeds := flags.String("seeds", "1,2,3", "the seeds")
	drawing := flags.String("svg", "", "draw the learning curves into this file as well")
	if err := flags.Parse(args); err != nil {
		return err
	}
	program := bench.Program{Path: *binary, Progress: os.Stderr}
	var all []outcome
	for text := range strings.SplitSeq(*seeds, ",") {
		if _, err := strconv.Atoi(text); err != nil {
			return fmt.Errorf("seed %q is not a number", text)
		}
		o, err := train(ctx, program, *recipe, text)
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	print(all)
	if *drawing != "" {
		if err := os.WriteFile(*drawing, draw(all), 0o644); err != nil {
			return err
		}
	}
	return save(*out, all)
}

// train runs the recipe with one seed and reads its curve out of the record.
func train(ctx context.Context, program bench.Program, recipe, seed string) (outcome, error) {
	var o outcome
	if err := program.Run(ctx, &o, "run", recipe, "--seed", seed, "--json"); err != nil {
		return o, err
	}
	var table struct {
		Rows [][]float64 `json:"rows"`
	}
	query := "select step, avg(success::int)::double from rewards where run = '" + o.Run + "' group by 1 order by 1"
	if err := program.Run(ctx, &table, "sql", "--json", query); err != nil {
		return o, err
	}
	for _, row := range table.Rows {
		o.Curve = append(o.Curve, row[1])
	}
	return o, nil
}

func save(file string, all []outcome) error {
	if len(all) == 0 {
		return errors.New("no seeds")
	}
	return bench.Write(file, map[string]any{"runs": all, "mean": means(all), "failed": failed(all)})
}
