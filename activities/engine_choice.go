package activities

import (
	"context"
	"fmt"
	"reflect"
	"strings"
	"sync"

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
}

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
	d := &Deps{torch: torchSlot{maker: torch}}
	c, err := d.chooseEngine(ctx, r)
	return c.kind, c.why, err
}

// chooseEngine settles a recipe's engine on this worker; a recipe that names one which cannot be had is refused.
func (d *Deps) chooseEngine(ctx context.Context, r *recipes.Recipe) (engineChoice, error) {
	e := r.Engine
	if e.Kind == recipes.EngineCPU {
		return engineChoice{kind: e.Kind}, nil
	}
	if d.torch.maker == nil { // another worker runs the models; what it cannot run it refuses
		if e.Kind == recipes.EngineTorch {
			return engineChoice{e.Kind, "a worker of the queues gpu and rollout"}, nil
		}
		return engineChoice{recipes.EngineCPU, "auto: the worker that prepared the run runs no models, so that it saw no GPU; name engine.kind"}, nil
	}
	offer, err := d.torch.maker.Offer(ctx, r)
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

// trainer is the slot that learns by a recipe.
func (d *Deps) trainer(ctx context.Context, r *recipes.Recipe) (*slot, error) {
	if r.Engine.Kind == recipes.EngineTorch {
		return d.torch.slot(ctx, r)
	}
	return d.Trainer, nil
}

// generator is the slot that samples by a recipe. A PyTorch engine both learns and samples: what an update leaves
// resident is what the next rollout samples from.
func (d *Deps) generator(ctx context.Context, r *recipes.Recipe) (*slot, error) {
	if r.Engine.Kind == recipes.EngineTorch {
		return d.torch.slot(ctx, r)
	}
	return d.Rollout, nil
}

// torchSlot is the worker's one PyTorch engine, opened when a stage first needs it. A recipe with other settings gets a
// new one in its place, for two would share the devices.
type torchSlot struct {
	maker Torch // nil: this worker runs no models
	make  func(policy.Engine) *slot

	mu       sync.Mutex
	settings torchSettings
	current  *slot
}

// torchSettings are what of a recipe an engine is opened for.
type torchSettings struct {
	engine recipes.Engine
	model  recipes.Policy
	seed   uint64 // of a new adapter's random numbers
}

func (t *torchSlot) slot(ctx context.Context, r *recipes.Recipe) (*slot, error) {
	wanted := torchSettings{engine: r.Engine, model: r.Policy}
	if r.Engine.LoRA != nil {
		wanted.seed = r.Seed
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.current != nil && reflect.DeepEqual(t.settings, wanted) {
		return t.current, nil
	}
	if t.maker == nil {
		return nil, refuse(wire.FailBadInput, "engine.kind: torch: this worker has no PyTorch engine")
	}
	if err := t.close(); err != nil {
		return nil, err
	}
	engine, err := t.maker.Open(ctx, r)
	if err != nil {
		return nil, fmt.Errorf("open the PyTorch engine: %w", err)
	}
	t.current, t.settings = t.make(engine), wanted
	return t.current, nil
}

// close ends the engine when nobody uses it any more. It needs the lock.
func (t *torchSlot) close() error {
	if t.current == nil {
		return nil
	}
	s := t.current
	t.current = nil
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.engine.Close(); err != nil {
		return fmt.Errorf("close the PyTorch engine: %w", err)
	}
	return nil
}

// Close ends the engine.
func (t *torchSlot) Close() error {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.close()
}
