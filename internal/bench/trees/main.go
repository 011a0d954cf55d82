// Command trees trains a small policy on the questions of searchqa by GRPO, by ARPO and by AEPO, with several seeds
// through the real pipeline. It compares held-out success twice: after equally many steps of equally many samples, and
// after equally many tool calls.
//
// Glossary. A *trial* is a method with one seed. Its run is named after both and after the digest of the recipe, so a
// trial that is done is not repeated, and one that was interrupted goes on. Its *curve* is held-out success over the
// tool calls that training has made, those of monitored trajectories included. The *common* number of calls is the
// smallest number that a trial of the seed has made at its end.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// baseline is the method that the others are compared with.
const baseline = "grpo"

// method is a recipe and what is changed in it.
type method struct {
	name, recipe string
	set          []string
}

// methods differ in nothing else than their names say: the world, the clone, the reward, the number of samples and
// the optimiser are those of searchqa.
var methods = []method{
	{baseline, "searchqa", []string{"reward={name: exact_match}", "resample.vspo=null"}},
	{"arpo", "searchqa", []string{"reward={name: exact_match}", "resample.vspo=null",
		"rollout.tree={rule: arpo, roots: 4}"}},
	{"aepo", "searchqa-aepo", nil},
}

// every is the number of steps between two points of a curve.
const every = 4

// point is held-out success after a number of tool calls.
type point struct {
	Step    int     `json:"step"`
	Calls   float64 `json:"calls"`
	Success float64 `json:"success"`
}

// trial is the outcome of one run.
type trial struct {
	Method    string  `json:"method"`
	Seed      int     `json:"seed"`
	Run       string  `json:"run_id"`
	RLSeconds float64 `json:"rl_seconds"`
	Curve     []point `json:"curve"`
	Generated float64 `json:"generated_tokens"`
	InLeaves  float64 `json:"tokens_in_leaves"`
	// AtCommon is the success after the common number of calls.
	AtCommon float64 `json:"at_common_calls"`
}

func (t trial) last() point { return t.Curve[len(t.Curve)-1] }

func main() { bench.Main("trees", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("trees", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/trees.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	seeds := flags.String("seeds", "1,2,3", "the seeds")
	set := flags.String("set", "", "changes to every recipe, as path=value, separated by spaces")
	if err := flags.Parse(args); err != nil {
		return err
	}
	b := bencher{program: bench.Program{Path: *binary, Progress: os.Stderr}, set: strings.Fields(*set)}
	var all []trial
	for text := range strings.SplitSeq(*seeds, ",") {
		seed, err := strconv.Atoi(text)
		if err != nil || seed < 0 {
			return fmt.Errorf("seed %q is not a whole number from 0", text)
		}
		var of []trial
		for _, m := range methods {
			t, err := b.try(ctx, m, seed)
			if err != nil { // what is done is kept for the next call
				return errors.Join(err, report(*out, all))
			}
			of = append(of, t)
		}
		all = append(all, atCommonCalls(of)...)
	}
	return report(*out, all)
}

func report(out string, all []trial) error {
	if len(all) == 0 {
		return nil
	}
	fmt.Print(table(all))
	return bench.Write(out, map[string]any{"trials": all, "differences": differences(all)})
}

// atCommonCalls reads the curves of one seed's trials at the common number of calls.
func atCommonCalls(of []trial) []trial {
	common := slices.MinFunc(of, func(a, b trial) int { return int(a.last().Calls - b.last().Calls) }).last().Calls
	for i := range of {
		of[i].AtCommon = at(of[i].Curve, common)
	}
	return of
}

// at is a curve's success after a number of calls, on the line between the two points next to it.
func at(curve []point, calls float64) float64 {
	for i, p := range curve {
		if p.Calls < calls {
			continue
		}
		if i == 0 || p.Calls == calls {
			return p.Success
		}
		before := curve[i-1]
		share := (calls - before.Calls) / (p.Calls - before.Calls)
		return before.Success + share*(p.Success-before.Success)
	}
	return curve[len(curve)-1].Success
}

// bencher runs trials.
type bencher struct {
	program bench.Program
	set     []string
}

// try runs a trial, continues it, or reads its result if it is done.
func (b bencher) try(ctx context.Context, m method, seed int) (trial, error) {
	t := trial{}
	changed := []string{"--seed", strconv.Itoa(seed)}
	for _, c := range slices.Concat(m.set, []string{fmt.Sprintf("evaluation.every=%d", every)}, b.set) {
		changed = append(changed, "--set", c)
	}
	var resolved struct {
		Digest string `json:"digest"`
	}
	if err := b.program.Run(ctx, &resolved, append([]string{"run", m.recipe, "--dry-run", "--json"},
		changed...)...); err != nil {
		return t, err
	}
	name := fmt.Sprintf("trees-%s-s%d-%.8s", m.name, seed, resolved.Digest)
	var listed struct {
		Runs []struct {
			Run string `json:"run"`
		} `json:"runs"`
	}
	if err := b.program.Run(ctx, &listed, "runs", "--json"); err != nil {
		return t, err
	}
	args := append([]string{"run", m.recipe, "--run-id", name, "--json"}, changed...)
	for _, r := range listed.Runs {
		if r.Run == name {
			args = []string{"resume", name, "--json"}
		}
	}
	if err := b.program.Run(ctx, &t, args...); err != nil {
		return t, err
	}
	t.Method, t.Seed, t.Run = m.name, seed, name
	return t, b.measure(ctx, &t)
}

// curveSQL gives each evaluation with the calls before it.
const curveSQL = `with called as (
  select step, count(*) as calls from tool_calls where run = 'RUN' and excluded is null group by step
)
select coalesce(e.step, 0)::int as step,
  coalesce((select sum(calls) from called c where c.step <= coalesce(e.step, 0)), 0)::double as calls,
  avg(e.success::int)::double as success
from evaluations e where e.run = 'RUN' and not e.greedy group by e.step, e.tag order by 1, e.tag desc`

const tokensSQL = `select (select sum(len(token_ids) - context_tokens) from turns where run = 'RUN')::double,
  (select sum(response_tokens) from trajectories where run = 'RUN')::double`

// measure reads the curve and the tokens of a run.
func (b bencher) measure(ctx context.Context, t *trial) error {
	rows, err := b.ask(ctx, t.Run, curveSQL)
	if err != nil {
		return err
	}
	for _, r := range rows {
		p := point{Step: int(r[0]), Calls: r[1], Success: r[2]}
		if n := len(t.Curve); n > 0 && t.Curve[n-1].Step == p.Step { // the last step has an evaluation of its own
			t.Curve = t.Curve[:n-1]
		}
		t.Curve = append(t.Curve, p)
	}
	if len(t.Curve) == 0 {
		return fmt.Errorf("run %s has no evaluations", t.Run)
	}
	if rows, err = b.ask(ctx, t.Run, tokensSQL); err != nil {
		return err
	}
	t.Generated, t.InLeaves = rows[0][0], rows[0][1]
	return nil
}

func (b bencher) ask(ctx context.Context, run, query string) ([][]float64, error) {
	var out struct {
		Rows [][]float64 `json:"rows"`
	}
	err := b.program.Run(ctx, &out, "sql", "--json", strings.ReplaceAll(query, "RUN", run))
	if err == nil && len(out.Rows) == 0 {
		err = fmt.Errorf("run %s: no rows", run)
	}
	return out.Rows, err
}
