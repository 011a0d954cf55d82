// Command pipelined compares training with and without rollouts that run ahead (pipeline.max_staleness), on the main
// job. It measures the time per step where each tool call waits for its result. On the same server it compares a stage
// without work with a bare activity. What the lag costs in success is an experiment (experiments/pipelined.yaml).
//
// Glossary. Tool calls *wait* on the line between the worker and a sandbox service. A *trial* is one run with one lag
// and one seed. The *ratio* is the median time per step without a lag, divided by that with one.
package main

import (
	"bytes"
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
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/history"
)

// trial is the outcome of one run.
type trial struct {
	Wait      float64 `json:"wait_seconds"`
	Lag       int     `json:"max_staleness"`
	Seed      int     `json:"seed"`
	Run       string  `json:"run_id"`
	Steps     int     `json:"steps"`
	RLSeconds float64 `json:"rl_seconds"`
	// Seconds are those of the whole command, evaluations included.
	Seconds float64 `json:"wall_seconds"`
}

func (t trial) perStep() float64 { return t.RLSeconds / float64(t.Steps) }

// lags are measured by turns, so that other load affects all alike.
var lags = []int{0, 1}

// goal is the least ratio where each tool call waits.
const goal = 1.25

// waiting are changes of the recipe. An eighth of the prompts leaves the processors time to wait, and several
// passes over each batch make updates nearly as long as rollouts. In the main job itself, rollouts take all processors,
// and updates are short because its model is small.
var waiting = []string{"rollout.prompts=8", "rollout.shard_groups=8", "optimizer.epochs=10"}

func main() { bench.Main("pipelined", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("pipelined", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/pipelined.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	wait := flags.Duration("wait", 200*time.Millisecond, "how long each tool call waits")
	steps := flags.Int("steps", 12, "steps of each run")
	rounds := flags.Int("rounds", 3, "runs of each lag")
	only := flags.Bool("in-step", false, "run without a lag alone")
	set := flags.String("set", "", "changes to the recipe, as path=value, separated by spaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *only {
		lags = []int{0}
	}
	if *steps < 2 || *rounds < 1 || *wait < 0 {
		return errors.New("at least 2 steps, 1 round and no negative wait")
	}
	path, err := filepath.Abs(*binary)
	if err != nil {
		return err
	}
	b := &bencher{set: strings.Fields(*set), program: bench.Program{Path: path, Progress: os.Stderr}}
	if err := b.open(ctx); err != nil {
		return errors.Join(err, b.close())
	}
	all, err := b.all(ctx, *wait, *steps, *rounds)
	var hop *history.RoundTrips // nil without a lag
	if err == nil && !*only {
		hop, err = b.roundTrips(ctx, all)
	}
	if err := errors.Join(err, b.close()); err != nil {
		return err
	}
	fmt.Print(table(all))
	if hop != nil {
		fmt.Printf("\n%s", hop)
	}
	return bench.Write(*out, map[string]any{"trials": all, "ratio": ratio(all), "goal": goal,
		"stage_without_work": hop})
}

// all runs each lag several times.
func (b *bencher) all(ctx context.Context, wait time.Duration, steps, rounds int) ([]trial, error) {
	var all []trial
	for round := range rounds {
		// The warm start, which both runs reuse, runs its calls one after the other: they do not wait.
		if err := b.train(ctx, 0, &trial{Seed: round + 1}, "steps=1", "evaluation.problems=3"); err != nil {
			return nil, err
		}
		more, err := b.lagged(ctx, wait, round+1, slices.Concat(waiting, []string{"steps=" + strconv.Itoa(steps),
			"evaluation.problems=30"}, b.set)...)
		if err != nil {
			return nil, err
		}
		all = append(all, more...)
	}
	return all, nil
}

// bencher runs trials on a stack of its own, whose worker runs tool calls in a service behind a delay.
type bencher struct {
	program bench.Program
	home    string
	line    *delay
	set     []string // changes to the recipe
	started []*bench.Started
}

// lagged runs each lag once.
func (b *bencher) lagged(ctx context.Context, wait time.Duration, seed int, set ...string) (all []trial, err error) {
	for _, lag := range lags {
		t := trial{Wait: wait.Seconds(), Lag: lag, Seed: seed}
		if err := b.train(ctx, wait, &t, append(set, "pipeline.max_staleness="+strconv.Itoa(lag))...); err != nil {
			return all, err
		}
		all = append(all, t)
	}
	return all, nil
}

// train runs the main job with changes.
func (b *bencher) train(ctx context.Context, wait time.Duration, t *trial, set ...string) error {
	b.line.late.Store(int64(wait))
	args := []string{"run", "recipes/quickstart.yaml", "--json", "--set", "loss.old_log_probs=recompute"}
	if t.Seed > 0 {
		args = append(args, "--seed", strconv.Itoa(t.Seed))
	}
	for _, one := range set {
		args = append(args, "--set", one)
	}
	return b.program.Run(ctx, t, args...)
}

func (b *bencher) open(ctx context.Context) (err error) {
	if b.home, err = os.MkdirTemp("", "pipelined-"); err != nil {
		return err
	}
	address, err := b.start(ctx, b.program, regexp.MustCompile(`listening on http://(\S+): `), "sandbox", "serve",
		"--listen", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if b.line, err = delayed(address); err != nil {
		return err
	}
	b.program.Env = append(os.Environ(), "ROPEWALK_HOME="+filepath.Join(b.home, "state"), "ROPEWALK_NO_WORKER=1")
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
	return errors.Join(err, os.RemoveAll(b.home))
}

// roundTrips compares a stage without work with a bare activity, on the server of the trials.
func (b *bencher) roundTrips(ctx context.Context, all []trial) (*history.RoundTrips, error) {
	c, err := history.Dial(ctx, b.program)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	var lagged []string
	for _, t := range all {
		if t.Lag > 0 {
			lagged = append(lagged, t.Run)
		}
	}
	out, err := history.Measure(ctx, c, lagged...)
	return &out, err
}

// ratio divides the median time per step without a lag by that with one; 0 without such trials.
func ratio(all []trial) float64 {
	times := map[int][]float64{}
	for _, t := range all {
		times[t.Lag] = append(times[t.Lag], t.perStep())
	}
	if len(times[0]) == 0 || len(times[1]) == 0 {
		return 0
	}
	return bench.Median(times[0]) / bench.Median(times[1])
}

// table shows every trial and what follows from them.
func table(all []trial) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "max_staleness\tseed\tsteps\ts per step\twhole run (s)\t")
	for _, t := range all {
		fmt.Fprintf(w, "%d\t%d\t%d\t%.2f\t%.1f\t\n", t.Lag, t.Seed, t.Steps, t.perStep(), t.Seconds)
	}
	w.Flush()
	if r := ratio(all); r > 0 {
		fmt.Fprintf(&b, "\na step without a lag takes %.2f times as long as with one\n", r)
	}
	return b.String()
}
