package data

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/resolver"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/schema"
)

// AnswerTasks has a given model answer the training tasks of one shard, several times each, and commits the graded
// answers. A shard that is committed is not answered again, whatever happens to the worker or the run.
type AnswerTasks struct{ *stage.Worker }

// Execute runs whole episodes. An answer depends on the run's seed, the task's place and the answer's number, and not
// on the shard.
func (a AnswerTasks) Execute(ctx context.Context, e *stage.Env, in api.AnswersInput) (out api.Answered, err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageAnswers, Turn: -1, Shard: in.Shard,
		Inputs: []schema.Ref{in.Candidates}}
	if in.Model.Manifest != in.Candidates {
		s.Inputs = append(s.Inputs, in.Model.Manifest)
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		tasks, places, err := candidates(ctx, a.Worker, w.Recipe, in)
		if err != nil {
			return err
		}
		sampler, err := w.Sampler(ctx, in.Scope, stage.Evaluating(w.Recipe))
		if err != nil {
			return err
		}
		var rows []schema.TaskAnswerRow
		err = sampler.Use(ctx, stage.Version(in.Model), func(s policy.Sampler) error {
			rows, err = a.answer(ctx, w, in, s, tasks, places)
			return err
		})
		if err != nil {
			return err
		}
		for _, r := range rows {
			out.Answers++
			w.Timing.Tokens += int64(r.ResponseTokens)
			if r.Matched {
				out.Matched++
			}
		}
		w.Timing.Rows = int64(len(rows))
		return stage.Put(ctx, w, rows)
	})
	return out, err
}

// candidates returns all training tasks, and the places of those that the shard answers.
func candidates(ctx context.Context, d *stage.Worker, recipe *recipes.Recipe, in api.AnswersInput) ([]env.Task, []int,
	error) {
	tasks, rows, err := d.Recipes.TaskRows(ctx, recipe, in.Run, in.Candidates)
	if err != nil {
		return nil, nil, err
	}
	var places []int
	for _, r := range rows {
		if r.Kept {
			places = append(places, int(r.Place))
		}
	}
	if in.Shard < 0 || in.Shard >= in.Shards || in.Shards > len(places) {
		return nil, nil, fmt.Errorf("shard %d of %d does not exist for %d tasks", in.Shard, in.Shards, len(places))
	}
	return tasks, shardOf(places, in.Shard, in.Shards), nil
}

// answer runs the episodes of the tasks and grades them.
func (a AnswerTasks) answer(ctx context.Context, w *stage.Draft, in api.AnswersInput, sampler policy.Sampler,
	tasks []env.Task, places []int) ([]schema.TaskAnswerRow, error) {
	d := w.Recipe.Data.Difficulty
	var pool *session.Pool
	if w.Recipe.Sandbox.Session {
		var err error
		if pool, err = a.Execution.EvaluationNotebooks(w.Recipe); err != nil {
			return nil, err
		}
		defer pool.Close()
	}
	box, err := a.Execution.Toolbox(w.Recipe, pool)
	if err != nil {
		return nil, err
	}
	loop, err := a.Recipes.Loop(w.Recipe, resolver.Sampling{Temperature: d.Temperature,
		Truncation: w.Recipe.Rollout.Truncation()})
	if err != nil {
		return nil, err
	}
	var episodes []*rollout.Episode
	for _, place := range places {
		for k := range d.Samples {
			e, err := loop.Begin(ctx, rollout.Identity{Label: rollout.LabelDifficulty, Group: place, Sample: k},
				tasks[place])
			if err != nil {
				return nil, err
			}
			episodes = append(episodes, e)
		}
	}
	calls := resource.CallScope(in.Scope)
	calls.Pass = rollout.LabelDifficulty
	err = loop.RunEpisodes(ctx, sampler, rollout.NewTools(box, calls), in.Model.Digest, episodes, w.Progress.Set)
	if err != nil {
		return nil, err
	}
	matched, err := verdict.Correct(ctx, w, api.EvaluateInput{Scope: in.Scope}, episodes)
	if err != nil {
		return nil, err
	}
	rows := make([]schema.TaskAnswerRow, len(episodes))
	for i, e := range episodes {
		rows[i] = answerRow(e, places[i/d.Samples], i%d.Samples, matched[i], in.Model.Digest)
	}
	return rows, nil
}

// answerRow is the row of one answer.
func answerRow(e *rollout.Episode, place, sample int, matched bool, model string) schema.TaskAnswerRow {
	t := rollout.TrajectoryRow(e)
	return schema.TaskAnswerRow{
		Place: int32(place), TaskID: t.ProblemID, Sample: int32(sample), Matched: matched, FinalAnswer: t.FinalAnswer,
		HasAnswer: t.HasAnswer, Gold: t.Gold, Turns: t.Turns, ToolCalls: t.ToolCalls, ToolErrors: t.ToolErrors,
		ResponseTokens: t.ResponseTokens, Finish: t.Finish, Text: t.Text, PolicyVersion: model,
	}
}
