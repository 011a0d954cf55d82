// Command smollm2 measures how a published model learns: it trains recipes/smollm2.yaml through the real servers and
// compares the success on held-out problems before and after, and the time, with what is required.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// The requirements on two cores: success in shares, time in seconds of reinforcement learning.
const (
	leastBefore   = 0.02
	mostBefore    = 0.60
	leastRise     = 0.25
	leastProblems = 256
	mostRLSeconds = 1800
)

// watchPeriod is the time between two looks at the workers' processor time.
const watchPeriod = time.Second

type rate struct {
	Success  float64 `json:"success"`
	Low      float64 `json:"ci_low"`
	High     float64 `json:"ci_high"`
	Problems int     `json:"n"`
}

// outcome is what `ropewalk run --json` prints, as far as this program reads it, with the processor time.
type outcome struct {
	Run          string             `json:"run_id"`
	Seed         uint64             `json:"seed"`
	Steps        int                `json:"steps"`
	Before       rate               `json:"warm_start"` // of the untouched model
	After        rate               `json:"final"`
	Tokens       int64              `json:"tokens"`
	RLSeconds    float64            `json:"rl_seconds"`
	EvalSeconds  float64            `json:"eval_seconds"`
	WallSeconds  float64            `json:"wall_seconds"`
	StageSeconds map[string]float64 `json:"stage_seconds"`
	PeakMB       float64            `json:"peak_rss_mb"`
	Digest       string             `json:"checkpoint_digest"`
	// ProcessorSeconds are those of the workers, evaluations included.
	ProcessorSeconds float64 `json:"processor_seconds"`
	// Curve is the success rate of each step's rollouts.
	Curve  []float64 `json:"curve"`
	Missed []string  `json:"missed"`
}

func main() { bench.Main("smollm2", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("smollm2", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/smollm2.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	recipe := flags.String("recipe", "recipes/smollm2.yaml", "the recipe")
	seed := flags.String("seed", "1", "the seed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		return err
	}
	o, err := train(ctx, bench.Program{Path: path, Progress: os.Stderr}, *recipe, *seed)
	if err != nil {
		return err
	}
	o.Missed = missed(o)
	print(o)
	return bench.Write(*out, o)
}

// train runs the recipe and reads its curve out of the record.
func train(ctx context.Context, program bench.Program, recipe, seed string) (outcome, error) {
	var o outcome
	watching, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	meter := bench.WatchEvery(watching, watchPeriod, program.Path, "worker")
	if err := program.Run(ctx, &o, "run", recipe, "--seed", seed, "--json"); err != nil {
		return o, err
	}
	o.ProcessorSeconds = meter.Used(began, time.Now())
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

// missed lists the requirements that a run misses.
func missed(o outcome) []string {
	out := []string{}
	check := func(ok bool, format string, args ...any) {
		if !ok {
			out = append(out, fmt.Sprintf(format, args...))
		}
	}
	check(o.Before.Success >= leastBefore && o.Before.Success <= mostBefore,
		"the untouched model succeeds in %.3f, want %.2f to %.2f", o.Before.Success, leastBefore, mostBefore)
	check(o.After.Success-o.Before.Success >= leastRise, "success rises by %.3f < %.2f",
		o.After.Success-o.Before.Success, leastRise)
	check(o.After.Low > o.Before.High, "the intervals overlap: up to %.3f before, from %.3f after", o.Before.High,
		o.After.Low)
	check(min(o.Before.Problems, o.After.Problems) >= leastProblems, "%d held-out problems < %d",
		min(o.Before.Problems, o.After.Problems), leastProblems)
	check(o.RLSeconds <= mostRLSeconds, "%.0f s of reinforcement learning > %d", o.RLSeconds, mostRLSeconds)
	return out
}

func print(o outcome) {
	fmt.Println("| seed | steps | before | after | RL s | evaluations s | processor s | peak MiB |")
	fmt.Println("| --- | --- | --- | --- | --- | --- | --- | --- |")
	fmt.Printf("| %d | %d | %s | %s | %.0f | %.0f | %.0f | %.0f |\n", o.Seed, o.Steps, o.Before, o.After, o.RLSeconds,
		o.EvalSeconds, o.ProcessorSeconds, o.PeakMB)
	fmt.Print("success by step:")
	for _, x := range o.Curve {
		fmt.Printf(" %.0f", 100*x)
	}
	fmt.Printf(" %%\ncheckpoint %s\n", o.Digest)
	for _, text := range o.Missed {
		fmt.Println("missed:", text)
	}
}

// String writes the rate with its 95% interval, in percent.
func (r rate) String() string {
	return fmt.Sprintf("%.1f%% [%.1f, %.1f]", 100*r.Success, 100*r.Low, 100*r.High)
}
