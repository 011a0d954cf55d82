package step

import (
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Batch runs stages of a step that are one piece each, in the order in which they are named.
var Batch = Group[*api.BatchInput, *api.Batch]{api.MakeBatch, batch}

func batch(r Runner, in *api.BatchInput, out *api.Batch) error {
	made := in.Made
	for _, stage := range in.Stages {
		result := out.Of(stage)
		declared, _ := stages.Of(stage)
		note := declared.Doc
		if stage == schema.StageResample && in.Chain != "" {
			note = in.Chain
		}
		if err := run(r, Whole(stage), note, in.Of(stage, made), result); err != nil {
			return err
		}
		if committed, ok := result.(*api.Committed); ok {
			made, out.Made = append(made, committed.Stages...), append(out.Made, committed.Stages...)
			continue
		}
		one := api.StageRef{Stage: stage, Ref: result.Common().Manifest}
		made, out.Made = append(made, one), append(out.Made, one)
	}
	return nil
}

// learn takes a step from its shards to what the update learns from.
func learn(r Runner, in *In, out *Out) error {
	commit, made := &api.CommitInput{Scope: in.Scope}, api.Made{}
	if in.Plan.Dynamic == nil {
		made = append(made, api.StageRef{Stage: schema.StagePrompts, Ref: out.Sampled.Prompts[0]})
	} else {
		commit.Stages = []api.StageParts{{Stage: schema.StagePrompts, Turn: -1, Parts: out.Sampled.Prompts}}
	}
	for _, s := range out.Sampled.Shards {
		commit.Rewards = append(commit.Rewards, s.Scored.Manifest)
	}
	for _, part := range stages.Segments(in.Plan.Needs) {
		if part[0].Parts == stages.Shards {
			ref, err := outputs(r, in, out.Sampled.Shards, made.One(schema.StageResample))
			if err != nil {
				return err
			}
			made = append(made, api.StageRef{Stage: part[0].Name, Ref: ref})
			continue
		}
		ask := &api.BatchInput{Scope: in.Scope, Commit: commit, Made: made, Excluded: in.Skip, Before: in.Buffer,
			Chain: in.Plan.Chain}
		for _, stage := range part {
			ask.Stages = append(ask.Stages, stage.Name)
		}
		note := in.Plan.Chain
		if part[0].Name != stages.Commit {
			note, ask.Commit = part[0].Doc, nil
		}
		var got api.Batch
		if err := Batch.Do(r, Whole(part[0].Name), note, ask, &got); err != nil {
			return err
		}
		out.Learnt.Merge(got)
		made = append(made, got.Made...)
	}
	out.Learnt.Made = made
	return nil
}

// outputs computes the token outputs of the kept trajectories, shard by shard, and commits the stage.
func outputs(r Runner, in *In, shards []api.Episodes, selection schema.Ref) (schema.Ref, error) {
	return sharded(r, in.Scope, schema.StageLogprobs, len(shards), func(r Runner, i int) (schema.Ref, error) {
		var done api.TokenOutputs
		s := shards[i]
		ask := api.TokenOutputsInput{Scope: in.Scope, Shard: s.Shard, Assembled: s.Assembled, Selection: selection,
			Policy: in.Policy}
		if in.Sampling != in.Policy {
			ask.Sampling = &in.Sampling
		}
		err := run(r, At{schema.StageLogprobs, s.Shard, -1}, ofShard(s.Shard), ask, &done)
		return done.Manifest, err
	})
}

// sharded makes a stage shard by shard, and commits it.
func sharded(r Runner, scope api.Scope, stage string, n int,
	one func(r Runner, i int) (schema.Ref, error)) (schema.Ref, error) {
	parts := make([]schema.Ref, n)
	if err := r.Each(n, func(r Runner, i int) (err error) {
		parts[i], err = one(r, i)
		return err
	}); err != nil {
		return schema.Ref{}, err
	}
	return commitParts(r, scope, stage, parts)
}

// commitParts commits the manifest of a stage over the manifests of its shards.
func commitParts(r Runner, scope api.Scope, stage string, parts []schema.Ref) (schema.Ref, error) {
	var out api.Committed
	err := r.Run(Call{Whole(stage), api.CommitStages, api.CommitInput{Scope: scope,
		Stages: []api.StageParts{{Stage: stage, Turn: -1, Parts: parts}}}, stage}, &out)
	if err != nil {
		return schema.Ref{}, err
	}
	return out.Stages.One(stage), nil
}
