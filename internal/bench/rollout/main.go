// Package rollout measures how well rollouts use the machine. It trains the quickstart for some steps, with interleaved
// and with staged shards by turns, and reports for each step the time from its first generated turn to its last tool
// call, next to the processor seconds that the worker and its sandbox used in that time.
//
// Then it counts the Temporal events of the runs' steps in their histories, and compares a stage without work with a
// bare activity on the same server, in a run with pipeline.max_staleness.
//
// The *bound* of a step is its processor seconds divided by the cores: no order of the same work ends earlier. A *trip*
// of an activity is the time from the event of its scheduling until its workflow has taken the result. A *bare*
// activity does nothing. A *load* is what a step costs the server.
package rollout

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
)

// modes are measured by turns, so that other load affects both alike. The first one has goals.
var modes = []string{"interleaved", "staged"}

// The goals of the main job on two quiet cores.
const (
	mostRatio         = 1.15 // of a rollout to its bound
	mostOrchestration = 5    // percent of the RL time
)

// outcome is what `ropewalk run --json` prints, as far as this program reads it.
type outcome struct {
	Run           string  `json:"run_id"`
	RLSeconds     float64 `json:"rl_seconds"`
	Orchestration float64 `json:"orchestration_share"`
}

// step is the rollout of one step: from its first generated turn to its last tool call.
type step struct{ seconds, processor, tokens float64 }

// measured is one run.
type measured struct {
	outcome
	mode  string
	steps []step
	loads []Load // of every step
}

// Case measures rollouts.
var Case = bench.Case{Name: "rollout", Doc: "rollouts next to the limit of the machine", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	binary := flags.String("binary", "bin/ropewalk", "the program")
	recipe := flags.String("recipe", "recipes/quickstart.yaml", "the recipe")
	steps := flags.Int("steps", 12, "steps of each run")
	rounds := flags.Int("rounds", 3, "runs of each mode")
	only := flags.String("mode", "", "measure this mode alone")
	lagged := flags.Int("lagged-steps", 12, "steps of the run whose stage without work is timed")
	return func(ctx context.Context, r *bench.Report) error {
		chosen := slices.DeleteFunc(slices.Clone(modes), func(m string) bool { return *only != "" && *only != m })
		if len(chosen) == 0 {
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
			for _, mode := range chosen {
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
		report(r, all, trips)
		return nil
	}
}

// measure trains with one mode.
func measure(ctx context.Context, program bench.Program, recipe, mode string, steps int) (measured, error) {
	m := measured{mode: mode}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	meter := bench.Watch(watching, bench.MeterPeriod, program.Path, "worker")
	if err := program.Train(ctx, &m.outcome, recipe, "rollout.mode="+mode, "steps="+strconv.Itoa(steps),
		"evaluation.problems=30"); err != nil {
		return m, err
	}
	stop()
	var rows [][]float64
	query := fmt.Sprintf(`select min(start_micros)::double, max(coalesce(end_micros, start_micros))::double,
		sum(tokens)::double from timings where run = '%s' and kind = 'activity' and step > 1
		and stage in ('rollout', 'sandbox') group by step order by step`, m.Run)
	if err := program.Query(ctx, &rows, query); err != nil {
		return m, err
	}
	for _, row := range rows {
		from, to := time.UnixMicro(int64(row[0])), time.UnixMicro(int64(row[1]))
		m.steps = append(m.steps, step{to.Sub(from).Seconds(), meter.Used(from, to), row[2]})
	}
	if len(m.steps) == 0 {
		return m, fmt.Errorf("run %s: its record has no times of rollouts", m.Run)
	}
	return m, nil
}

// histories reads the load of every step of the runs, and compares a stage without work with a bare activity. The
// program's stack is up meanwhile. The run with that stage has few prompts: the rollouts of the main job, which go on
// meanwhile, take all processors, and bare activities have the processors for themselves.
func histories(ctx context.Context, program bench.Program, recipe string, steps int, all []measured) (
	out RoundTrips, err error) {
	up, _, err := program.Start(ctx, regexp.MustCompile(`the stack stays (up)`), "up")
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, up.Stop()) }()
	var lagged outcome
	if err := program.Train(ctx, &lagged, recipe, "pipeline.max_staleness=1", "loss.old_log_probs=recompute",
		"rollout.prompts=8", "rollout.shard_groups=8", "steps="+strconv.Itoa(steps),
		"evaluation.problems=30"); err != nil {
		return out, err
	}
	c, err := Dial(ctx, program)
	if err != nil {
		return out, err
	}
	defer c.Close()
	for i := range all {
		if all[i].loads, err = StepLoads(ctx, c, all[i].Run); err != nil {
			return out, err
		}
	}
	return roundTrips(ctx, c, lagged.Run)
}

// report adds the medians of both modes, and the stage without work.
func report(r *bench.Report, all []measured, trips RoundTrips) {
	for _, mode := range modes {
		if found := medians(mode, all); found != nil {
			r.Add(mode, found...)
		}
	}
	r.Add("a stage without work", bench.Of("ms", trips.Stage), bench.Of("ms of a bare activity", trips.Bare),
		bench.Of("ratio", trips.Ratio()).AtMost(MostStage))
}

// medians are of one mode: of all steps for a rollout, of all runs for the rest. The events are those of the step
// with the most for each that it may have.
func medians(mode string, all []measured) []bench.Figure {
	var seconds, processor, ratio, rate, orchestration, rl []float64
	var load Load
	for _, m := range all {
		if m.mode != mode {
			continue
		}
		orchestration, rl = append(orchestration, 100*m.Orchestration), append(rl, m.RLSeconds)
		for _, l := range m.loads {
			if l.Over() > load.Over() {
				load = l
			}
		}
		for _, s := range m.steps {
			seconds, processor = append(seconds, s.seconds), append(processor, s.processor)
			ratio = append(ratio, s.seconds/(s.processor/float64(runtime.NumCPU())))
			rate = append(rate, s.tokens/s.seconds)
		}
	}
	if len(seconds) == 0 {
		return nil
	}
	over := bench.Of("rollout ÷ bound", bench.Median(ratio))
	share := bench.Of("orchestration %", bench.Median(orchestration))
	events := bench.Of("events of a step", load.Events)
	if mode == modes[0] {
		over, share = over.AtMost(mostRatio), share.AtMost(mostOrchestration)
		events = events.AtMost(float64(load.Limit()))
	}
	return []bench.Figure{bench.Of("rollout s", bench.Median(seconds)),
		bench.Of("processor s", bench.Median(processor)), over, bench.Of("tokens/s", bench.Median(rate)), share,
		bench.Of("RL s", bench.Median(rl)), events}
}
