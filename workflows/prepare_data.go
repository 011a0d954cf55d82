package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// data decides which training tasks the run draws. It returns the measured times of its stages.
func (r *trainRun) data(ctx workflow.Context, init api.Scope) ([]api.Timing, error) {
	in, timings := api.DataInput{Scope: init}, []api.Timing(nil)
	if r.prepared.Plan.Needs.Difficulty {
		var err error
		if timings, err = r.answers(ctx, &in); err != nil {
			return nil, err
		}
	}
	r.stage(ctx, api.InitStep, schema.StageData)
	var data api.DataPrepared
	err := r.attempt(ctx, mandatory("it decides which tasks are drawn"), func(ctx workflow.Context) (err error) {
		in.Scope = r.mend(in.Scope)
		data, err = call[api.DataPrepared](ctx, r.limits, api.PrepareData, "filter the training tasks", in)
		return err
	})
	return append(timings, data.Timing), err
}

// answers has the given model answer the tasks that pass the other filters, shard by shard.
func (r *trainRun) answers(ctx workflow.Context, in *api.DataInput) ([]api.Timing, error) {
	r.stage(ctx, api.InitStep, schema.StageCandidates)
	var chosen api.Candidates
	needed := mandatory("the tasks are judged by it")
	err := r.attempt(ctx, needed, func(ctx workflow.Context) (err error) {
		in.Scope = r.mend(in.Scope)
		chosen, err = call[api.Candidates](ctx, r.limits, api.SelectCandidates,
			"the tasks that the model answers", in.Scope)
		return err
	})
	if err != nil {
		return nil, err
	}
	r.stage(ctx, api.InitStep, schema.StageAnswers)
	timings, parts := []api.Timing{chosen.Timing}, make([]api.Answered, chosen.Shards)
	err = r.attempt(ctx, needed, func(ctx workflow.Context) error {
		in.Scope = r.mend(in.Scope)
		return each(ctx, sideBySide, chosen.Shards, func(ctx workflow.Context, i int) (err error) {
			parts[i], err = call[api.Answered](ctx, r.limits, api.AnswerTasks,
				fmt.Sprintf("shard %d of %d", i, chosen.Shards),
				api.AnswersInput{Scope: in.Scope, Candidates: chosen.Manifest, Model: chosen.Model, Shard: i,
					Shards: chosen.Shards})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	refs := make([]schema.Ref, len(parts))
	for i, p := range parts {
		refs[i] = p.Manifest
		timings = append(timings, p.Timing)
	}
	in.Candidates = chosen.Manifest
	var made api.Committed
	err = r.attempt(ctx, needed, func(ctx workflow.Context) (err error) {
		made, err = call[api.Committed](ctx, r.limits, api.CommitStages, schema.StageAnswers,
			api.CommitInput{Scope: in.Scope,
				Stages: []api.StageParts{{Stage: schema.StageAnswers, Turn: -1, Parts: refs}}})
		in.Answers = made.Stages.One(schema.StageAnswers)
		return err
	})
	return append(timings, made.Timing), err
}
