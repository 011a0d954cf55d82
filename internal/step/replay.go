package step

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// Replayed is what a replay has made.
type Replayed struct {
	Made   api.Made
	Edited string // files of the user's function that were edited since the run began
	// Updated is the counterfactual policy; nil if the replay trains none. Contrast compares it with the run's own.
	Updated  *api.Updated
	Contrast *api.Contrasted
	// Factual and Counterfactual are the results of both on held-out problems.
	Factual, Counterfactual *api.EvaluationSummary
}

// Replay makes stages of a step again, in the generation of the scope, from what the step has committed or the stages
// before them have made. If the reward has to call the user's function again, that is made first. If the update is one
// of the stages, its policy is compared with the run's own.
func Replay(r Runner, scope api.Scope, in api.ReplayPrepared, replayed []string, out *Replayed) error {
	p := replaying{r, scope, in, slices.Clone(in.Made), out}
	for _, stage := range replayed {
		if err := p.redo(stage); err != nil {
			return err
		}
	}
	if out.Updated == nil || in.Update.Own == nil {
		return nil
	}
	out.Contrast = &api.Contrasted{}
	return run(r, Whole(schema.StageContrast), "distance from the run's own policy", api.ContrastInput{Scope: scope,
		Policy: out.Updated.Policy, Own: *in.Update.Own, Trajectories: in.Trajectories}, out.Contrast)
}

// replaying is a replay under way: what its stages can read, and what it has made.
type replaying struct {
	Runner
	scope api.Scope
	in    api.ReplayPrepared
	made  api.Made
	out   *Replayed
}

// redo makes one stage.
func (p *replaying) redo(stage string) (err error) {
	var ref schema.Ref
	switch stage {
	case schema.StageReward:
		ref, err = p.rewards()
	case schema.StageLogprobs:
		ref, err = p.outputs()
	case schema.StageUpdate:
		ref, err = p.update()
	default:
		var one api.Batch
		err = batch(p, &api.BatchInput{Scope: p.scope, Stages: []string{stage}, Made: p.made, Excluded: p.in.Excluded,
			Before: p.in.Buffer, Chain: p.in.Chain}, &one)
		ref = one.Made.One(stage)
	}
	if err == nil {
		made := api.StageRef{Stage: stage, Ref: ref}
		p.made, p.out.Made = append(p.made, made), append(p.out.Made, made)
	}
	return err
}

// rewards scores the trajectories of every shard again.
func (p *replaying) rewards() (schema.Ref, error) {
	verdicts := p.in.Verdicts
	if p.in.Problems != (schema.Ref{}) {
		called, err := p.callAgain()
		if err != nil {
			return schema.Ref{}, err
		}
		verdicts = append(slices.Clone(verdicts), called...)
	}
	return p.sharded(schema.StageReward, func(r Runner, at At, shard api.ShardRef) (schema.Ref, error) {
		var done api.Scored
		ask := api.ScoreInput{Scope: p.scope, Shard: shard.Shard, Trajectories: shard.Ref}
		for _, v := range verdicts {
			if v.Shard == shard.Shard {
				ask.Verdicts = append(ask.Verdicts, v.Ref)
			}
		}
		err := run(r, at, ofShard(shard.Shard), ask, &done)
		return done.Manifest, err
	})
}

// callAgain calls the user's function with the trajectories of every shard and commits the stage.
func (p *replaying) callAgain() ([]api.ShardRef, error) {
	called, edited := make([]api.ShardRef, len(p.in.Trajectories)), make([]string, len(p.in.Trajectories))
	ref, err := sharded(p, p.scope, schema.StageFunction, len(called), func(r Runner, i int) (schema.Ref, error) {
		var done api.Verdicts
		shard := p.in.Trajectories[i]
		err := run(r, At{schema.StageFunction, shard.Shard, -1}, ofShard(shard.Shard), api.VerdictInput{
			Scope: p.scope, Shard: shard.Shard, Trajectories: shard.Ref, Prompts: p.in.Problems}, &done)
		called[i], edited[i] = api.ShardRef{Shard: shard.Shard, Ref: done.Manifest}, done.Edited
		return done.Manifest, err
	})
	p.out.Made = append(p.out.Made, api.StageRef{Stage: schema.StageFunction, Ref: ref})
	for _, e := range edited {
		if e != "" {
			p.out.Edited = e
		}
	}
	return called, err
}

// outputs asks the models again about the trajectories that the replay keeps.
func (p *replaying) outputs() (schema.Ref, error) {
	selection := p.made.One(schema.StageResample)
	return p.sharded(schema.StageLogprobs, func(r Runner, at At, shard api.ShardRef) (schema.Ref, error) {
		var done api.TokenOutputs
		err := run(r, at, ofShard(shard.Shard), api.TokenOutputsInput{Scope: p.scope, Shard: shard.Shard,
			Assembled: shard.Ref, Selection: selection, Policy: p.in.Update.Policy, Sampling: p.in.Update.Sampling},
			&done)
		return done.Manifest, err
	})
}

// update trains the policy that the step began with on the replay's batch.
func (p *replaying) update() (schema.Ref, error) {
	p.out.Updated = &api.Updated{}
	err := run(p, Whole(schema.StageUpdate), "a counterfactual policy", api.UpdateInput{Scope: p.scope,
		Batch: p.made.One(schema.StageAdvantage), Policy: p.in.Update.Policy,
		Buffer: p.made.One(stages.Maker(schema.ReplayBatch))}, p.out.Updated)
	return p.out.Updated.Manifest, err
}

// sharded makes a stage for each shard of the step's trajectories and commits it.
func (p *replaying) sharded(stage string, one func(r Runner, at At, shard api.ShardRef) (schema.Ref, error)) (
	schema.Ref, error) {
	return sharded(p, p.scope, stage, len(p.in.Trajectories), func(r Runner, i int) (schema.Ref, error) {
		return one(r, At{stage, p.in.Trajectories[i].Shard, -1}, p.in.Trajectories[i])
	})
}
