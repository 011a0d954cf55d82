package activities

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// errOtherInputs: a manifest names inputs that its stage does not read.
var errOtherInputs = errors.New("the inputs are not what the stage reads")

// again runs a pure stage without shards on the inputs that a manifest names after its recipe. It returns
// errOtherInputs if the stage does not read these.
func (d *Deps) again(ctx context.Context, scope api.Scope, before schema.Manifest) (schema.Ref, error) {
	in := api.StageInput{Scope: scope}
	var err error
	if in.Excluded, err = excludedShards(before); err != nil {
		return schema.Ref{}, err
	}
	for _, ref := range before.Inputs[1:] {
		at, err := schema.ParseManifestKey(ref.Key)
		if err != nil {
			return schema.Ref{}, errOtherInputs
		}
		if at.Stage == before.Stage {
			in.Before = ref
		}
		in.Made = append(in.Made, api.StageRef{Stage: at.Stage, Ref: ref})
	}
	declared, _ := stages.Of(before.Stage)
	for _, read := range declared.Reads {
		if needed(read) && len(in.Made.All(read.Stage)) == 0 {
			return schema.Ref{}, errOtherInputs
		}
	}
	set, err := d.registered()[declared.Activities[0].Name].run(ctx, &Env{}, in)
	if err != nil {
		return schema.Ref{}, err
	}
	result := (&api.Batch{}).Of(before.Stage)
	set(result)
	return result.Its().Manifest, nil
}

// needed reports whether a stage cannot be made without a stage that it reads. Not all recipes have every stage, and a
// shard without calls has no stage sandbox.
func needed(read stages.Read) bool {
	declared, _ := stages.Of(read.Stage)
	return !declared.Optional() && read.Stage != schema.StageSandbox
}
