package activities

import (
	"context"
	"fmt"
	"strconv"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluate measures a policy on the held-out problems: with samples at a temperature, and with the most likely
// response if the recipe asks for it. It runs whole episodes. If the evaluation has shards, they have run the episodes,
// and Evaluate computes the figures of them all.
type Evaluate struct{ *Deps }

// statSuccess is the sampled success rate in an evaluation's manifest; keep_best compares it.
const statSuccess = "success"

// Execute commits one row for each episode, and the episodes' turns, and returns the summary. After the last evaluation
// of a run it commits the run's end, so that a reader knows that nothing comes after it.
func (a Evaluate) Execute(ctx context.Context, e *Env, in api.EvaluateInput) (api.Evaluated, error) {
	out, err := a.evaluate(ctx, e, in, schema.StageEvaluate)
	if err == nil && in.Tag == api.TagFinal {
		err = ownLimit(ctx, classify(a.commitEnd(ctx, in, out.Manifest)))
	}
	return out, err
}

func (a Evaluate) commitEnd(ctx context.Context, in api.EvaluateInput, evaluated schema.Ref) error {
	m, err := a.manifest(ctx, spec{scope: in.Scope, stage: schema.StageEnd, turn: -1, shard: -1,
		inputs: []schema.Ref{in.Policy.Manifest, evaluated}})
	if err == nil {
		_, _, _, err = a.Record.Commit(ctx, m)
	}
	return err
}

// evaluate is the evaluation, as a stage of that name.
func (a Evaluate) evaluate(ctx context.Context, e *Env, in api.EvaluateInput, stage string) (api.Evaluated, error) {
	out := api.Evaluated{}
	s := spec{scope: in.Scope, stage: stage, turn: -1, shard: -1, inputs: []schema.Ref{in.Policy.Manifest}}
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if len(in.Parts) > 0 {
			return a.combine(ctx, w, in, recipe, &out)
		}
		found, err := a.measure(ctx, w, in, recipe, 0, recipe.Evaluation.Problems)
		if err != nil {
			return err
		}
		out.Summary = summarise(w, found.rows, found.excluded, recipe)
		return found.put(ctx, w, recipe)
	})
	return out, err
}

// summarise computes the figures of an evaluation's rows, in canonical order, and states them in the manifest.
func summarise(w *draft, rows []schema.EvaluationRow, excluded int,
	recipe *recipes.Recipe) api.EvaluationSummary {
	schema.Sort(rows)
	out := evaluation.Summarise(evaluation.Sampled(rows), recipe.Seed)
	w.timing.Rows, w.timing.Tokens = int64(len(rows)), out.Tokens
	w.stats = map[string]float64{statSuccess: out.Success, "greedy": out.Greedy}
	if excluded > 0 {
		w.stats[schema.StatExcluded] = float64(excluded)
	}
	if score, ok := evaluation.Score(rows); ok {
		w.stats[schema.StatScore] = score
	}
	if recipe.Environment.Declaration().Golds {
		w.stats[schema.StatExactMatch], w.stats[schema.StatF1] = evaluation.Words(rows)
	}
	if rate, judged := evaluation.JudgedRate(rows, recipe.Seed); judged {
		w.stats[schema.StatJudged] = rate.Success
	}
	return out
}

// combine computes the figures of an evaluation from the rows that its shards have committed.
func (a Evaluate) combine(ctx context.Context, w *draft, in api.EvaluateInput, recipe *recipes.Recipe,
	out *api.Evaluated) error {
	rows, err := read[schema.EvaluationRow](ctx, a.records, in.Parts...)
	if err != nil {
		return err
	}
	excluded := 0
	for _, ref := range in.Parts {
		m, err := a.Record.Read(ctx, ref)
		if err != nil {
			return err
		}
		excluded += int(m.Stats[schema.StatExcluded])
	}
	seen := map[string]bool{}
	for _, r := range rows {
		seen[r.ProblemID] = true
	}
	n, err := a.heldOutTasks(ctx, recipe)
	if err != nil {
		return err
	}
	// A problem of which every episode broke has no row.
	if len(seen) > n || len(seen) < n && excluded == 0 {
		return fmt.Errorf("%w: the shards of the evaluation hold %d problems, want %d", commit.ErrDamaged, len(seen), n)
	}
	w.manifest.Parts = in.Parts
	out.Summary = summarise(w, rows, excluded, recipe)
	return nil
}

// measure runs the episodes of n held-out problems, from one on, with the policy.
func (d *Deps) measure(ctx context.Context, w *draft, in api.EvaluateInput, recipe *recipes.Recipe, from,
	n int) (*heldOut, error) {
	m, err := d.newMeasurement(ctx, w, in, recipe, from, n)
	if err != nil {
		return nil, err
	}
	defer m.close()
	sampler, err := w.sampler(ctx, in.Scope, evaluating(recipe))
	if err != nil {
		return nil, err
	}
	v := version(in.Policy)
	v.Positions = in.Positions
	err = sampler.UseWith(ctx, v, m.pages.version(), func(s policy.Sampler) error {
		m.pages.with(s)
		return m.run(ctx, s)
	})
	if err != nil {
		return nil, err
	}
	files, err := d.worldCode(ctx, recipe)
	if err != nil {
		return nil, err
	}
	if err := w.noteCode(ctx, in.Scope, schema.NoteEnvironmentCode, files); err != nil {
		return nil, err
	}
	return m.found, d.judge(ctx, w, in, recipe, m.found)
}

// solved reports for each episode whether it solved its problem. A reward that reads gradings has them made here, and
// the evaluation records what follows from them. An answer whose grading breaks fails the stage.
func (d *Deps) solved(ctx context.Context, w *draft, in api.EvaluateInput, recipe *recipes.Recipe,
	episodes []*rollout.Episode) ([]bool, error) {
	g, rows := grading.New(recipe, in.Step), make([]schema.TrajectoryRow, len(episodes))
	if recipe.Environment.Declaration().Interactive {
		g.Played = map[string]reward.Played{}
	}
	for i, e := range episodes {
		rows[i] = rollout.TrajectoryRow(e)
		rows[i].TrajectoryID = strconv.Itoa(i) // ids cannot number the episodes of every evaluation
		if g.Played != nil {
			g.Played[rows[i].TrajectoryID] = grading.PlayedBy(e)
		}
	}
	if g.Reads() {
		if err := d.isolates(recipe); err != nil {
			return nil, err
		}
		gradings, pairs := g.Questions(rows)
		graded, err := d.gradePairs(ctx, w, recipe, g.Tested(), pairs)
		if err != nil {
			return nil, err
		}
		for _, v := range graded {
			if v.Broken != nil {
				return nil, fmt.Errorf("grade an answer: %w", v.Broken)
			}
		}
		grading.Fill(gradings, graded)
		if err := g.Settle(gradings, rows); err != nil {
			return nil, err
		}
	}
	if g.Called() {
		problems := map[string]string{}
		for i, e := range episodes {
			rows[i].GroupID, problems[strconv.Itoa(i)] = strconv.Itoa(i), e.Task.Text
		}
		results, err := CallFunction{d}.called(ctx, w, in.Scope, recipe, g, rows, problems)
		if err != nil {
			return nil, err
		}
		for _, r := range results {
			if r.Excluded != nil {
				return nil, temporal.NewApplicationError("call the reward function: "+*r.Excluded, api.FailCode)
			}
		}
		if err := g.SettleResults(results, rows); err != nil {
			return nil, err
		}
	}
	out := make([]bool, len(rows))
	for i, row := range rows {
		correct, err := g.Correct(row)
		if err != nil {
			return nil, err
		}
		out[i] = correct
	}
	return out, nil
}
