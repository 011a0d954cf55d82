package activities

import (
	"context"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluate measures a policy on the held-out problems: samples at a temperature, and the most
// likely response where the recipe asks for it. It runs whole episodes.
type Evaluate struct{ *Deps }

// statSuccess is the sampled success rate in an evaluation's manifest; keep_best compares it.
const statSuccess = "success"

// resamples of the bootstrap: enough for the second digit of a 95% interval.
const resamples = 2000

// Execute commits one row per episode and returns the summary.
func (a Evaluate) Execute(ctx context.Context, in wire.EvaluateInput) (wire.Evaluated, error) {
	out := wire.Evaluated{}
	s := spec{scope: in.Scope, stage: wire.StageEvaluate, turn: -1, shard: -1, inputs: []schema.Ref{in.Policy.Manifest}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		var rows []schema.EvaluationRow
		generator, err := w.generator(ctx, in.Scope, recipe)
		if err != nil {
			return err
		}
		err = generator.use(ctx, in.Policy, false, func(engine policy.Engine) error {
			rows, err = a.run(ctx, w, in, recipe, engine, &out.Summary)
			return err
		})
		if err != nil {
			return err
		}
		summarise(&out.Summary, rows, recipe.Seed)
		w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Summary.Tokens
		w.stats = map[string]float64{statSuccess: out.Summary.Success, "greedy": out.Summary.Greedy}
		return put(ctx, w, rows)
	})
	return out, err
}

// run drives the sampled and the greedy episodes to their ends.
func (a Evaluate) run(ctx context.Context, w *draft, in wire.EvaluateInput, recipe *recipes.Recipe, engine policy.Engine, summary *wire.EvaluationSummary) ([]schema.EvaluationRow, error) {
	problems, err := calc.Heldout(recipe.Evaluation.Problems)
	if err != nil {
		return nil, err
	}
	passes := []struct {
		temperature float64
		samples     int
	}{{recipe.Evaluation.Temperature, recipe.Evaluation.Samples}}
	total := len(problems) * recipe.Evaluation.Samples
	if recipe.Evaluation.Greedy {
		passes = append(passes, struct {
			temperature float64
			samples     int
		}{0, 1})
		total += len(problems)
	}
	tools := func(int) rollout.Tools { return rollout.Calls(a.Sandbox) }
	if recipe.Sandbox.Session {
		pool, err := a.evaluationNotebooks(recipe)
		if err != nil {
			return nil, err
		}
		defer pool.Close()
		tools = func(pass int) rollout.Tools { return rollout.Notebooks(pool, a.cellsAtOnce(), strconv.Itoa(pass)) }
	}
	var rows []schema.EvaluationRow
	for i, pass := range passes {
		loop, err := a.loop(recipe, pass.temperature)
		if err != nil {
			return nil, err
		}
		var episodes []*rollout.Episode
		for g, p := range problems {
			for k := range pass.samples {
				id := rollout.Identity{Label: rollout.LabelEvaluate, Step: max(in.Scope.Step, 0), Group: g, Sample: k}
				episodes = append(episodes, loop.Start(id, p))
			}
		}
		before := len(rows)
		report := func(done, _ int) { w.progress.set(before+done, total) }
		if err := loop.RunEpisodes(ctx, engine, tools(i), in.Policy.Digest, episodes, report); err != nil {
			return nil, err
		}
		for i, e := range episodes {
			row, err := evaluationRow(in, e, i%pass.samples, pass.temperature == 0, recipe, summary)
			if err != nil {
				return nil, err
			}
			rows = append(rows, row)
		}
	}
	return rows, nil
}

func evaluationRow(in wire.EvaluateInput, e *rollout.Episode, sample int, greedy bool, recipe *recipes.Recipe, summary *wire.EvaluationSummary) (schema.EvaluationRow, error) {
	t := rollout.TrajectoryRow(e)
	got, err := newGrader(recipe, in.Step).base(t)
	summary.Trajectories++
	summary.ToolCalls += int(t.ToolCalls)
	summary.Tokens += int64(t.ResponseTokens)
	return schema.EvaluationRow{
		Tag: in.Tag, ProblemID: t.ProblemID, Level: t.Level, Sample: int32(sample), Greedy: greedy,
		Success: got.outcome.Verdict.Correct(), ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors, Turns: t.Turns, Tokens: t.Tokens,
		FinalAnswer: t.FinalAnswer, Gold: t.Gold, PolicyVersion: in.Policy.Digest,
	}, err
}

// tally counts the samples of one problem.
type tally struct{ success, n float64 }

func (t *tally) add(success bool) {
	if success {
		t.success++
	}
	t.n++
}

// summarise works out rates over problems: each problem counts with the mean of its samples.
func summarise(out *wire.EvaluationSummary, rows []schema.EvaluationRow, runSeed uint64) {
	problems := map[string]*tally{}
	units := map[string][]*tally{} // by level, and all under ""; in the rows' order, so that no sum depends on a map's
	var greedy tally
	var calls, errors float64
	for _, r := range rows {
		if r.Greedy {
			greedy.add(r.Success)
			continue
		}
		if r.Success {
			calls += float64(r.ToolCalls)
			errors += float64(r.ToolErrors)
		}
		p := problems[r.ProblemID]
		if p == nil {
			p = &tally{}
			level := strconv.Itoa(int(r.Level))
			problems[r.ProblemID] = p
			units[""], units[level] = append(units[""], p), append(units[level], p)
		}
		p.add(r.Success)
	}
	out.ByLevel = map[string]wire.Rate{}
	for level, tallies := range units {
		if level == "" {
			out.Rate = rate(tallies, runSeed, "all")
		} else {
			out.ByLevel[level] = rate(tallies, runSeed, level)
		}
	}
	if greedy.n > 0 {
		out.Greedy = greedy.success / greedy.n
	}
	if calls > 0 {
		out.ToolErrorRatePositives = errors / calls
	}
}

func rate(tallies []*tally, runSeed uint64, label string) wire.Rate {
	means := make([]float64, len(tallies))
	for i, t := range tallies {
		means[i] = t.success / t.n
	}
	mean, low, high := diagnose.Bootstrap(means, resamples, seed.Rand("bootstrap/"+label, runSeed))
	return wire.Rate{Success: mean, CILow: low, CIHigh: high, N: len(means)}
}
