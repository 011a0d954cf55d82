package activities

import (
	"cmp"
	"context"

	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// ReportRoom says what this worker has room for, so that a workflow knows what it can give to the worker's queue. That
// it is answered at all says that the queue has a worker.
type ReportRoom struct{ *Deps }

// Execute reports the room. A worker that cannot run the shards of the recipe refuses.
func (a ReportRoom) Execute(ctx context.Context, in api.RoomInput) (api.Room, error) {
	defer heartbeats(ctx, &progress{})() // servers may be slow to answer
	out := api.Room{Host: hostname(), Shards: cmp.Or(a.shards, 1)}
	recipe, err := a.recipe(ctx, in.Scope)
	if err == nil {
		err = a.runsCalls(recipe)
	}
	if err == nil {
		out.Capacity, err = a.roomFor(ctx, in.Run, recipe)
	}
	return out, classify(err)
}

// roomFor is the room of the engine that generates for a recipe. A PyTorch engine is not opened for the question.
func (d *Deps) roomFor(ctx context.Context, run string, recipe *recipes.Recipe) (api.Capacity, error) {
	if len(recipe.Engine.Servers) == 0 && recipe.Engine.Kind == recipes.EngineTorch {
		if !d.engines.RunsTorch() { // another worker of the queue may
			return api.Capacity{}, temporal.NewApplicationError("this worker runs no PyTorch engine", "")
		}
		return api.Capacity{Engine: recipes.EngineTorch}, nil
	}
	if len(recipe.Engine.Servers) == 0 && recipe.Engine.Kind == recipes.EngineTinker {
		return api.Capacity{Engine: recipes.EngineTinker}, nil
	}
	sampler, release, err := d.engines.Sampler(ctx, run, recipe, false)
	if err != nil {
		return api.Capacity{}, err
	}
	defer release(false) // neither the CPU engine nor servers are leased
	return capacityOf(sampler.Engine()), nil
}

// capacityOf is what a sampler has room for.
func capacityOf(s policy.Sampler) api.Capacity {
	out := api.Capacity{Engine: s.Describe().Device}
	if sized, ok := s.(policy.Sized); ok {
		room := sized.Room()
		out.Rows, out.Tokens = room.Rows, room.Tokens
	}
	return out
}
