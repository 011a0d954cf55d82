package activities

import (
	"context"
	"errors"
	"strings"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Torch makes PyTorch engines for a worker.
type Torch interface {
	// Offer says what an engine of the recipe's settings would run on here, or why this worker can have none.
	Offer(ctx context.Context, r *recipes.Recipe) (Offer, error)
	// Open opens one. Whoever got it closes it.
	Open(ctx context.Context, r *recipes.Recipe) (policy.Engine, error)
	// Devices counts those that engines can have here, whoever has them now; 0 where they run on the processor.
	Devices() int
	// Serve runs ranks of another host's engine until that engine ends or ctx does; room gives it devices of this
	// worker's, once none of its own engines needs them. ErrGangGone and ErrNoPlace say that there was nothing to serve.
	Serve(ctx context.Context, in wire.RanksInput, room Room) error
}

// Room waits until a worker's engines leave so many devices, and gives them back by the function.
type Room func(ctx context.Context, devices int) (release func(), err error)

// What keeps a worker from serving ranks.
var (
	ErrGangGone = errors.New("the engine is gone")          // nobody has to serve it any more
	ErrNoPlace  = errors.New("this host can have no place") // another one could
)

// Offer is what a PyTorch engine would run on.
type Offer struct {
	GPU    bool
	Device string // for people
}

// Where a run is prepared, its manifest says which engine runs it, and why.
const (
	noteEngine    = "engine"
	noteEngineWhy = "engine_why"
)

// engineChoice is the engine of a run and, for people, what it runs on or why it was chosen.
type engineChoice struct{ kind, why string }

// ChooseEngine settles a recipe's engine as a worker with these PyTorch engines would: its kind, and for people what it
// runs on or why it was chosen.
func ChooseEngine(ctx context.Context, r *recipes.Recipe, torch Torch) (kind, why string, err error) {
	d := &Deps{engines: &enginePool{maker: torch}}
	c, err := d.chooseEngine(ctx, r)
	return c.kind, c.why, err
}

// chooseEngine settles a recipe's engine on this worker; a recipe that names one which cannot be had is refused.
func (d *Deps) chooseEngine(ctx context.Context, r *recipes.Recipe) (engineChoice, error) {
	e := r.Engine
	if e.Kind == recipes.EngineCPU {
		return engineChoice{kind: e.Kind}, nil
	}
	if d.engines.maker == nil { // another worker runs the models; what it cannot run it refuses
		if e.Kind == recipes.EngineTorch {
			return engineChoice{e.Kind, "a worker of the queues gpu and rollout"}, nil
		}
		return engineChoice{recipes.EngineCPU, "auto: the worker that prepared the run runs no models, so that it saw no GPU; name engine.kind"}, nil
	}
	offer, err := d.engines.maker.Offer(ctx, r)
	switch {
	case err != nil && e.Kind == recipes.EngineTorch:
		return engineChoice{}, refuse(wire.FailBadInput, "engine.kind: torch: %v", err)
	case err != nil:
		return engineChoice{recipes.EngineCPU, "auto: " + firstLine(err.Error())}, nil
	case e.Kind == recipes.EngineTorch || offer.GPU:
		return engineChoice{recipes.EngineTorch, offer.Device}, nil
	}
	return engineChoice{recipes.EngineCPU, "auto: PyTorch would run on " + offer.Device}, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// note puts the choice into the manifest that prepares a run.
func (c engineChoice) note(m *schema.Manifest) {
	m.Note[noteEngine] = c.kind
	if c.why != "" {
		m.Note[noteEngineWhy] = c.why
	}
}

// engineOf reads the choice back. Runs prepared before there was one ran on the CPU engine.
func engineOf(m schema.Manifest, e recipes.Engine) recipes.Engine {
	if e.Kind == recipes.EngineAuto {
		e.Kind = recipes.EngineCPU
		if kind := m.Note[noteEngine]; kind != "" {
			e.Kind = kind
		}
	}
	return e
}
