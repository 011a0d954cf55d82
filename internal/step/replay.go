package step

import (
	"slices"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// Replayed is what a replay has made.
type Replayed struct {
	Made   api.Made
	Edited string // files of the user's function that were edited since the run began
}

// Replay makes pure stages of a step again, in the generation of the scope, from what the step has committed or the
// stages before them have made. If the reward has to call the user's function again, that is made first.
func Replay(r Runner, scope api.Scope, in api.ReplayPrepared, stages []string, out *Replayed) error {
	made := slices.Clone(in.Made)
	if stages[0] == schema.StageReward {
		verdicts := in.Verdicts
		if in.Problems != (schema.Ref{}) {
			called, err := callAgain(r, scope, in, out)
			if err != nil {
				return err
			}
			verdicts = append(slices.Clone(verdicts), called...)
		}
		ref, err := sharded(r, scope, schema.StageReward, len(in.Trajectories), func(r Runner, i int) (schema.Ref,
			error) {
			var done api.Scored
			shard := in.Trajectories[i]
			ask := api.ScoreInput{Scope: scope, Shard: shard.Shard, Trajectories: shard.Ref}
			for _, v := range verdicts {
				if v.Shard == shard.Shard {
					ask.Verdicts = append(ask.Verdicts, v.Ref)
				}
			}
			err := run(r, At{schema.StageReward, shard.Shard, -1}, ofShard(shard.Shard), ask, &done)
			return done.Manifest, err
		})
		if err != nil {
			return err
		}
		one := api.StageRef{Stage: schema.StageReward, Ref: ref}
		made, out.Made, stages = append(made, one), append(out.Made, one), stages[1:]
	}
	var rest api.Batch
	err := batch(r, &api.BatchInput{Scope: scope, Stages: stages, Made: made, Excluded: in.Excluded,
		Before: in.Buffer, Chain: in.Chain}, &rest)
	out.Made = append(out.Made, rest.Made...)
	return err
}

// callAgain calls the user's function with the trajectories of every shard and commits the stage.
func callAgain(r Runner, scope api.Scope, in api.ReplayPrepared, out *Replayed) ([]api.ShardRef, error) {
	called, edited := slices.Clone(in.Trajectories), make([]string, len(in.Trajectories))
	ref, err := sharded(r, scope, schema.StageFunction, len(called), func(r Runner, i int) (schema.Ref, error) {
		var done api.Verdicts
		shard := called[i].Shard
		err := run(r, At{schema.StageFunction, shard, -1}, ofShard(shard), api.VerdictInput{Scope: scope, Shard: shard,
			Trajectories: in.Trajectories[i].Ref, Prompts: in.Problems}, &done)
		called[i].Ref, edited[i] = done.Manifest, done.Edited
		return done.Manifest, err
	})
	out.Made = append(out.Made, api.StageRef{Stage: schema.StageFunction, Ref: ref})
	for _, e := range edited {
		if e != "" {
			out.Edited = e
		}
	}
	return called, err
}
