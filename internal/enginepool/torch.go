package enginepool

import (
	"context"

	"github.com/ropewalk/ropewalk/gpu/gang"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
)

// Torch makes PyTorch engines for a worker. Its methods may be called at once.
type Torch interface {
	// Offer says what an engine with the recipe's settings would run on here. An error says why this worker can have
	// none.
	Offer(ctx context.Context, r *recipes.Recipe) (Offer, error)
	// Open opens an engine with the recipe's settings. The caller closes the engine.
	Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error)
	// Devices counts the devices that engines can have here, in use or not; 0 if engines run on the processor.
	Devices() int
	// Serve runs ranks of another host's engine until that engine or ctx ends. It gets devices of this worker through
	// room, once none of the worker's own engines needs them. gang.ErrGone and gang.ErrElsewhere say that there was
	// nothing to serve.
	Serve(ctx context.Context, i gang.Invitation, room Room) error
}

// Room waits until a worker's engines leave the given number of devices free. The returned function gives them back.
type Room func(ctx context.Context, devices int) (release func(), err error)

// Offer is what a PyTorch engine would run on, and what it would do as a sampler.
type Offer struct {
	GPU          bool
	Device       string // a description for people
	Capabilities policy.Capabilities
}
