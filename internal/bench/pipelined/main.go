// Package pipelined compares training with and without rollouts that run ahead (pipeline.max_staleness), on the main
// job: the time per step where each tool call waits for its result. What the lag costs in success is an experiment
// (experiments/pipelined.yaml).
//
// Tool calls *wait* on the line between the worker and a sandbox service. The *ratio* is the time per step without a
// lag, divided by that with one.
package pipelined

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// goal is the least ratio where each tool call waits.
const goal = 1.25

// waiting are changes of the recipe. An eighth of the prompts leaves the processors time to wait, and several
// passes over each batch make updates nearly as long as rollouts. In the main job itself, rollouts take all processors,
// and updates are short because its model is small.
var waiting = []string{"rollout.prompts=8", "rollout.shard_groups=8", "optimizer.epochs=10", "evaluation.problems=30"}

// Case measures steps with and without a lag by turns, so that other load affects both alike.
var Case = bench.Case{Name: "pipelined", Doc: "steps with and without rollouts that run ahead", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	binary := flags.String("binary", "bin/ropewalk", "the program")
	wait := flags.Duration("wait", 200*time.Millisecond, "how long each tool call waits")
	steps := flags.Int("steps", 12, "steps of each run")
	rounds := flags.Int("rounds", 3, "runs of each lag")
	set := flags.String("set", "", "changes to the recipe, as path=value, separated by spaces")
	return func(ctx context.Context, r *bench.Report) (err error) {
		if *steps < 2 || *rounds < 1 || *wait < 0 {
			return errors.New("at least 2 steps, 1 round and no negative wait")
		}
		b := &bencher{dir: r.Dir, program: bench.Program{Path: *binary, Progress: os.Stderr}}
		defer func() { err = errors.Join(err, b.close()) }()
		if err := b.open(ctx); err != nil {
			return err
		}
		changes := slices.Concat(waiting, []string{"steps=" + strconv.Itoa(*steps)}, strings.Fields(*set))
		found, err := bench.TakeTurns(ctx, bench.Rounds(*rounds), b.side(0, *wait, *steps, changes),
			b.side(1, *wait, *steps, changes))
		if err != nil {
			return err
		}
		report(r, found[0], found[1])
		return nil
	}
}

// side trains with a lag, with another seed in each round, and measures the seconds of RL of a step.
func (b *bencher) side(lag int, wait time.Duration, steps int, set []string) bench.Side[float64] {
	seed, set := 0, append(slices.Clone(set), "pipeline.max_staleness="+strconv.Itoa(lag))
	return bench.Side[float64]{Name: fmt.Sprintf("max_staleness %d", lag),
		Measure: func(ctx context.Context) (float64, error) {
			seed++
			if lag == 0 { // the warm start runs its calls one after the other: they do not wait. Both sides reuse it
				if _, err := b.train(ctx, 0, seed, "steps=1", "evaluation.problems=3"); err != nil {
					return 0, err
				}
			}
			seconds, err := b.train(ctx, wait, seed, set...)
			return seconds / float64(steps), err
		}}
}

// report adds the seconds per step of each seed and their medians.
func report(r *bench.Report, without, with []float64) {
	figures := func(a, b float64) []bench.Figure {
		return []bench.Figure{bench.Of("s per step without a lag", a), bench.Of("with one", b), bench.Of("ratio", a/b)}
	}
	for i := range without {
		r.Add(fmt.Sprintf("seed %d", i+1), figures(without[i], with[i])...)
	}
	all := figures(bench.Median(without), bench.Median(with))
	all[2] = all[2].AtLeast(goal)
	r.Add("median of each", all...)
}

// bencher trains on a local stack that it starts, whose worker runs tool calls in a service behind a delay.
type bencher struct {
	dir     string
	program bench.Program
	line    *delay
	started []*bench.Started
}

// train runs the main job with changes and returns its seconds of RL.
func (b *bencher) train(ctx context.Context, wait time.Duration, seed int, set ...string) (float64, error) {
	b.line.late.Store(int64(wait))
	var ran struct {
		RLSeconds float64 `json:"rl_seconds"`
	}
	err := b.program.Train(ctx, &ran, "recipes/quickstart.yaml", slices.Concat(
		[]string{"loss.old_log_probs=recompute", "seed=" + strconv.Itoa(seed)}, set)...)
	return ran.RLSeconds, err
}

func (b *bencher) open(ctx context.Context) (err error) {
	address, err := b.start(ctx, b.program, regexp.MustCompile(`listening on http://(\S+): `), "sandbox", "serve",
		"--listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if b.line, err = delayed(address); err != nil {
		return err
	}
	b.program.Env = append(os.Environ(), "ROPEWALK_HOME="+filepath.Join(b.dir, "state"), "ROPEWALK_NO_WORKER=1")
	if _, err := b.start(ctx, b.program, regexp.MustCompile(`the stack stays (up)`), "up"); err != nil {
		return err
	}
	servers, err := b.program.Output(ctx, "env")
	if err != nil {
		return err
	}
	worker := b.program
	worker.Env = slices.Concat(b.program.Env, strings.Fields(servers))
	_, err = b.start(ctx, worker, nil, "worker", "--sandbox-address", b.line.address())
	return err
}

// start starts a program, which close ends.
func (b *bencher) start(ctx context.Context, p bench.Program, ready *regexp.Regexp, args ...string) (string, error) {
	s, found, err := p.Start(ctx, ready, args...)
	if s != nil {
		b.started = append(b.started, s)
	}
	return found, err
}

// close ends what open has started, the latest first.
func (b *bencher) close() (err error) {
	for _, s := range slices.Backward(b.started) {
		err = errors.Join(err, s.Stop())
	}
	if b.line != nil {
		b.line.close()
	}
	return err
}
