// Command presets trains the smoke recipe of every method's preset through the real pipeline, checks each record, and
// prints what each update did. It fails if a run fails or if its policy never moved.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"os"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/recipes/smoke"
)

// trained is the outcome of one smoke recipe.
type trained struct {
	Preset  string   `json:"preset"`
	Run     string   `json:"run_id"`
	Steps   []step   `json:"steps"`
	Notes   []string `json:"notes,omitempty"`
	Failure string   `json:"failure,omitempty"`
}

// step has the figures of one step of a run, as means over its optimiser steps.
type step struct {
	Reward   float64 `json:"reward"`
	Loss     float64 `json:"loss"`
	GradNorm float64 `json:"grad_norm"`
	Seconds  float64 `json:"seconds"`
}

func main() { bench.Main("presets", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("presets", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/presets.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	only := flags.String("only", "", "presets, separated by commas; all methods' when empty")
	if err := flags.Parse(args); err != nil {
		return err
	}
	names := smoke.Presets()
	if *only != "" {
		names = strings.Split(*only, ",")
	}
	stop, err := up(ctx, *binary)
	if err != nil {
		return err
	}
	var all []trained
	failed := 0
	for _, name := range names {
		t, err := train(ctx, bench.Program{Path: *binary}, name)
		if err != nil {
			t.Failure = err.Error()
			failed++
		}
		if ctx.Err() != nil {
			break
		}
		print(t)
		all = append(all, t)
	}
	err = errors.Join(stop(), bench.Write(*out, map[string]any{"smoke": all, "failed": failed}))
	if failed > 0 {
		err = errors.Join(err, fmt.Errorf("%d of %d smoke recipes failed", failed, len(names)))
	}
	return errors.Join(err, ctx.Err())
}

// up keeps the local stack running between the runs, so that no run needs to start it.
func up(ctx context.Context, binary string) (stop func() error, err error) {
	cmd := exec.CommandContext(ctx, binary, "up")
	cmd.Stderr = os.Stderr
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = 30 * time.Second
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the local stack: %w", err)
	}
	return func() error {
		if err := cmd.Process.Signal(os.Interrupt); err != nil {
			return fmt.Errorf("stop the local stack: %w", err)
		}
		var exit *exec.ExitError
		if err := cmd.Wait(); err != nil && !errors.As(err, &exit) { // interrupted, as asked
			return fmt.Errorf("stop the local stack: %w", err)
		}
		return nil
	}, nil
}

// train trains a preset's smoke recipe and checks its record.
func train(ctx context.Context, program bench.Program, preset string) (trained, error) {
	t := trained{Preset: preset}
	resolved, err := recipes.Resolve(preset, "", nil, nil, nil)
	if err != nil {
		return t, err
	}
	t.Notes = smoke.Notes(&resolved.Recipe)
	var ran struct {
		Run string `json:"run_id"`
	}
	if err := program.Run(ctx, &ran, "run", preset, "--smoke", "--json"); err != nil {
		return t, err
	}
	t.Run = ran.Run
	var table struct {
		Rows [][]*float64 `json:"rows"`
	}
	query := strings.ReplaceAll(`select r.step, r.reward, u.loss, u.grad_norm, s.seconds
from (select step, avg(reward)::double as reward from rewards where run = RUN group by 1) r
left join (select step, avg(loss)::double as loss, avg(grad_norm)::double as grad_norm from updates where run = RUN group by 1) u using (step)
left join (select step, ((max(end_micros) - min(start_micros)) / 1e6)::double as seconds from timings where run = RUN and kind = 'activity' and stage <> 'evaluate' group by 1) s using (step)
order by 1`, "RUN", "'"+ran.Run+"'")
	if err := program.Run(ctx, &table, "sql", "--json", query); err != nil {
		return t, err
	}
	for _, row := range table.Rows {
		t.Steps = append(t.Steps,
			step{Reward: value(row[1]), Loss: value(row[2]), GradNorm: value(row[3]), Seconds: value(row[4])})
	}
	for _, check := range [][]string{{"verify", ran.Run}, {"replay", "--check", ran.Run}} {
		if err := program.Run(ctx, nil, check...); err != nil {
			return t, err
		}
	}
	return t, t.judge()
}

// value is a number of a table. It is 0 without a number, for a step that trained on nothing.
func value(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// judge fails a run that did not take its three steps, or whose policy never moved.
func (t trained) judge() error {
	if len(t.Steps) != 3 {
		return fmt.Errorf("%d steps, want 3", len(t.Steps))
	}
	moved := false
	for i, s := range t.Steps {
		if math.IsNaN(s.Loss) || math.IsInf(s.Loss, 0) || math.IsNaN(s.GradNorm) || math.IsInf(s.GradNorm, 0) {
			return fmt.Errorf("step %d: loss %g, gradient norm %g", i+1, s.Loss, s.GradNorm)
		}
		moved = moved || s.GradNorm > 0
	}
	if !moved {
		return errors.New("no step has a gradient")
	}
	return nil
}

// print writes one line: rewards, losses and gradient norms by step, and seconds a step.
func print(t trained) {
	w := tabwriter.NewWriter(os.Stdout, 24, 0, 2, ' ', 0)
	defer w.Flush()
	if t.Failure != "" {
		fmt.Fprintf(w, "%s\tFAILED: %s\n", t.Preset, t.Failure)
		return
	}
	column := func(f func(step) string) string {
		var all []string
		for _, s := range t.Steps {
			all = append(all, f(s))
		}
		return strings.Join(all, " ")
	}
	fmt.Fprintf(w, "%s\treward %s\tloss %s\tgradient norm %s\tseconds %s\n", t.Preset,
		column(func(s step) string { return fmt.Sprintf("%.2f", s.Reward) }),
		column(func(s step) string { return fmt.Sprintf("%+.4f", s.Loss) }),
		column(func(s step) string { return fmt.Sprintf("%.3g", s.GradNorm) }),
		column(func(s step) string { return fmt.Sprintf("%.1f", s.Seconds) }))
}
