package activities

import (
	"context"
	"fmt"
	"strconv"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/evaluation"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/prompts"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/reward"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/schema"
)

// Evaluate measures a policy on the held-out problems: with samples at a temperature, and with the most likely
// response if the recipe asks for it. It runs whole episodes.
type Evaluate struct{ *Deps }

// statSuccess is the sampled success rate in an evaluation's manifest; keep_best compares it.
const statSuccess = "success"

// Execute commits one row for each episode, and the episodes' turns, and returns the summary.
func (a Evaluate) Execute(ctx context.Context, in api.EvaluateInput) (api.Evaluated, error) {
	out := api.Evaluated{}
	s := spec{scope: in.Scope, stage: api.StageEvaluate, turn: -1, shard: -1, inputs: []schema.Ref{in.Policy.Manifest}}
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		var found *heldOut
		sampler, err := w.sampler(ctx, in.Scope, recipe)
		if err != nil {
			return err
		}
		err = sampler.Use(ctx, version(in.Policy), func(s policy.Sampler) error {
			found, err = a.run(ctx, w, in, recipe, s)
			return err
		})
		if err != nil {
			return err
		}
		schema.Sort(found.rows)
		out.Summary = evaluation.Summarise(evaluation.Sampled(found.rows), recipe.Seed)
		w.timing.Rows, w.timing.Tokens = int64(len(found.rows)), out.Summary.Tokens
		w.stats = map[string]float64{statSuccess: out.Summary.Success, "greedy": out.Summary.Greedy}
		if found.graded > 0 {
			w.stats[schema.StatScore] = found.score / float64(found.graded)
		}
		if recipe.Environment.Declaration().Golds {
			w.stats[schema.StatExactMatch], w.stats[schema.StatF1] = evaluation.Words(found.rows)
		}
		return found.put(ctx, w, recipe.Environment.Declaration().Interactive)
	})
	return out, err
}

// run runs the sampled and the greedy episodes to completion.
func (a Evaluate) run(ctx context.Context, w *draft, in api.EvaluateInput, recipe *recipes.Recipe,
	sampler policy.Sampler) (*heldOut, error) {
	world, err := a.world(recipe)
	if err != nil {
		return nil, err
	}
	problems, err := prompts.HeldOut(ctx, world, recipe)
	if err != nil {
		return nil, err
	}
	passes := []struct {
		sampling
		samples int
	}{{sampling{recipe.Evaluation.Temperature, recipe.Evaluation.Truncation()}, recipe.Evaluation.Samples}}
	total, most := len(problems)*recipe.Evaluation.Samples, recipe.Evaluation.Samples
	if recipe.Evaluation.Greedy {
		passes = append(passes, struct {
			sampling
			samples int
		}{samples: 1})
		total, most = total+len(problems), most+1
	}
	var pool *session.Pool
	if recipe.Sandbox.Session {
		if pool, err = a.evaluationNotebooks(recipe); err != nil {
			return nil, err
		}
		defer pool.Close()
	}
	box, err := a.toolbox(recipe, pool)
	if err != nil {
		return nil, err
	}
	found, first := &heldOut{whole: fits(len(problems), most)}, 0
	for i, pass := range passes {
		loop, err := a.loop(recipe, pass.sampling)
		if err != nil {
			return nil, err
		}
		var episodes []*rollout.Episode
		for g, p := range problems {
			for k := range pass.samples {
				id := rollout.Identity{Label: rollout.LabelEvaluate, Step: max(in.Scope.Step, 0), Group: g, Sample: k}
				e, err := loop.Begin(ctx, id, p)
				if err != nil {
					return nil, err
				}
				episodes = append(episodes, e)
			}
		}
		before := len(found.rows)
		report := func(done, _ int) { w.progress.set(before+done, total) }
		calls := callScope(in.Scope)
		calls.Pass = fmt.Sprintf("%s-%d-%d", in.Tag, in.Step, i)
		err = loop.RunEpisodes(ctx, sampler, rollout.NewTools(box, calls), in.Policy.Digest, episodes, report)
		if err != nil {
			return nil, err
		}
		if err := found.add(episodes, first); err != nil {
			return nil, err
		}
		correct, err := a.solved(ctx, w, in, recipe, episodes)
		if err != nil {
			return nil, err
		}
		for i, e := range episodes {
			found.row(in, e, i%pass.samples, pass.temperature == 0, correct[i])
		}
		if pass.temperature > 0 {
			if err := found.grade(world, episodes); err != nil {
				return nil, err
			}
		}
		first += pass.samples
	}
	return found, nil
}

// solved reports for each episode whether it solved its problem. A reward that reads gradings has them made here, and
// the evaluation records what follows from them. An answer whose grading breaks fails the stage.
func (a Evaluate) solved(ctx context.Context, w *draft, in api.EvaluateInput, recipe *recipes.Recipe,
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
		if err := a.isolates(recipe); err != nil {
			return nil, err
		}
		gradings, pairs := g.Questions(rows)
		graded, err := a.verdicts(ctx, w, recipe, g.Tested(), pairs)
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
