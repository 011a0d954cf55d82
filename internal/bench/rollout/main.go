// Command rollout measures how well rollouts use the machine. It trains the quickstart for some steps, with interleaved
// and with staged shards by turns, and reports for each step the time from its first generated turn to its last tool
// call, next to the processor seconds that the worker and its sandbox used in that time.
//
// Then it counts the Temporal events of the runs' steps in their histories, and compares a stage without work with a
// bare activity on the same server, in a run with pipeline.max_staleness (package history).
//
// The *bound* of a step is its processor seconds divided by the cores: no order of the same work ends earlier. The
// *ratio* is the step's time divided by its bound.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/history"
)

// modes are measured by turns, so that other load affects both alike.
var modes = []string{"interleaved", "staged"}

// outcome is what `ropewalk run --json` prints, as far as this program reads it.
type outcome struct {
	Run           string  `json:"run_id"`
	RLSeconds     float64 `json:"rl_seconds"`
	Orchestration float64 `json:"orchestration_share"`
	Digest        string  `json:"checkpoint_digest"`
}

// measured is one run.
type measured struct {
	outcome
	Mode  string         `json:"mode"`
	Steps []step         `json:"steps"`
	Ratio float64        `json:"ratio"` // median over the steps
	Loads []history.Load `json:"loads"` // of every step
	// Overlaps are those of the whole run, its start and its evaluations included.
	Overlaps []history.Overlap `json:"overlaps"`
}

func main() { bench.Main("rollout", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rollout", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/rollout.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	recipe := flags.String("recipe", "recipes/quickstart.yaml", "the recipe")
	steps := flags.Int("steps", 12, "steps of each run")
	rounds := flags.Int("rounds", 3, "runs of each mode")
	only := flags.String("mode", "", "measure this mode alone")
	lagged := flags.Int("lagged-steps", 12, "steps of the run whose stage without work is timed")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only != "" && !slices.Contains(modes, *only) {
		return fmt.Errorf("-mode must be one of %v, got %q", modes, *only)
	}
	if *steps < 2 || *rounds < 1 || *lagged < 1 {
		return errors.New("at least 2 steps, 1 round and 1 lagged step: the first step of a run is left out")
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		return err
	}
	program := bench.Program{Path: path, Progress: os.Stderr}
	var all []measured
	for range *rounds {
		for _, mode := range modes {
			if *only != "" && *only != mode {
				continue
			}
			m, err := measure(ctx, program, *recipe, mode, *steps)
			if err != nil {
				return err
			}
			all = append(all, m)
		}
	}
	trips, err := histories(ctx, program, *recipe, *lagged, all)
	if err != nil {
		return err
	}
	medians := summarise(all)
	goals := goalsOf(medians, trips)
	fmt.Print(table(medians), activities(all), goals)
	missed := goals.missed()
	err = bench.Write(*out, map[string]any{"runs": all, "medians": medians, "cores": runtime.NumCPU(),
		"stage_without_work": trips, "failed": missed})
	if len(missed) > 0 {
		err = errors.Join(err, fmt.Errorf("%d goals missed", len(missed)))
	}
	return err
}

// measure trains with one mode.
func measure(ctx context.Context, program bench.Program, recipe, mode string, steps int) (measured, error) {
	m := measured{Mode: mode}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	meter := bench.Watch(watching, program.Path, "worker")
	if err := program.Run(ctx, &m.outcome, "run", recipe, "--json", "--set", "rollout.mode="+mode, "--set",
		"steps="+strconv.Itoa(steps), "--set", "evaluation.problems=30"); err != nil {
		return m, err
	}
	stop()
	var read struct {
		Rows [][]float64 `json:"rows"`
	}
	query := fmt.Sprintf(`select step, min(start_micros)::double, max(coalesce(end_micros, start_micros))::double,
		sum(tokens)::double from timings where run = '%s' and kind = 'activity' and step > 1
		and stage in ('rollout', 'sandbox') group by step order by step`, m.Run)
	if err := program.Run(ctx, &read, "sql", "--json", query); err != nil {
		return m, err
	}
	var ratios []float64
	for _, row := range read.Rows {
		from, to := time.UnixMicro(int64(row[1])), time.UnixMicro(int64(row[2]))
		s := step{Step: int(row[0]), Seconds: to.Sub(from).Seconds(), Processor: meter.Used(from, to), Tokens: row[3]}
		s.Ratio = s.Seconds / (s.Processor / float64(runtime.NumCPU()))
		ratios = append(ratios, s.Ratio)
		m.Steps = append(m.Steps, s)
	}
	if len(ratios) == 0 {
		return m, fmt.Errorf("run %s: its record has no times of rollouts", m.Run)
	}
	m.Ratio = bench.Median(ratios)
	return m, nil
}

// histories reads the load of every step of the runs, and compares a stage without work with a bare activity. The
// program's stack is up meanwhile. The run with that stage has few prompts: the rollouts of the main job, which go on
// meanwhile, take all processors, and bare activities have the processors for themselves.
func histories(ctx context.Context, program bench.Program, recipe string, steps int, all []measured) (
	out history.RoundTrips, err error) {
	up, _, err := program.Start(ctx, regexp.MustCompile(`the stack stays (up)`), "up")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, up.Stop()) }()
	var lagged outcome
	if err := program.Run(ctx, &lagged, "run", recipe, "--json", "--set", "pipeline.max_staleness=1", "--set",
		"loss.old_log_probs=recompute", "--set", "rollout.prompts=8", "--set", "rollout.shard_groups=8", "--set",
		"steps="+strconv.Itoa(steps), "--set", "evaluation.problems=30"); err != nil {
		return out, err
	}
	c, err := history.Dial(ctx, program)
	if err != nil {
		return out, err
	}
	defer c.Close()
	for i := range all {
		if all[i].Loads, err = history.StepLoads(ctx, c, all[i].Run); err != nil {
			return out, err
		}
		if all[i].Overlaps, err = history.Overlaps(ctx, c, all[i].Run); err != nil {
			return out, err
		}
	}
	return history.Measure(ctx, c, lagged.Run)
}
