package activities

import (
	"context"
	"errors"

	"github.com/ropewalk/ropewalk/internal/replaying"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// pureStage is the activity of a stage that can be recomputed from the record; register.go lists them.
type pureStage interface {
	// again runs the activity on the inputs that a manifest names after its recipe: what the stage reads, in the
	// order in which the activity lists them. It returns errOtherInputs if the stage does not read these inputs.
	again(ctx context.Context, scope api.Scope, before schema.Manifest, inputs []schema.Ref) (schema.Ref, error)
	// sources finds what a replay of the stage reads from stages that are not replayed with it, except rewards.
	sources(ctx context.Context, p *replaying.Plan, out *api.ReplayPrepared) error
}

// errOtherInputs: a manifest names inputs that its stage does not read.
var errOtherInputs = errors.New("the inputs are not what the stage reads")
