package enginepool

import (
	"context"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// Choice is the engine of a run and a description, for people, of what it runs on or why it was chosen.
type Choice struct{ Kind, Why string }

// Choose chooses a recipe's engine on this worker. A recipe that names an unavailable engine, or that needs a
// capability which the engine lacks as a sampler, is a badinput.Error.
func (p *Pool) Choose(ctx context.Context, r *recipes.Recipe) (Choice, error) {
	c, offer, err := p.choose(ctx, r)
	switch {
	case err != nil:
		return Choice{}, err
	case c.Kind == recipes.EngineCPU:
		return c, p.sampler.check(r)
	case p.torch == nil: // the worker that runs the models checks
		return c, nil
	}
	return c, check(offer.Device, offer.Capabilities, r)
}

func (p *Pool) choose(ctx context.Context, r *recipes.Recipe) (Choice, Offer, error) {
	kind := r.Engine.Kind
	if kind == recipes.EngineCPU {
		return Choice{Kind: kind}, Offer{}, nil
	}
	if p.torch == nil { // another worker runs the models, and refuses what it cannot run
		if kind == recipes.EngineTorch {
			return Choice{kind, "a worker of the queues gpu and rollout"}, Offer{}, nil
		}
		const why = "auto: the worker that prepared the run runs no models, so that it saw no GPU; name engine.kind"
		return Choice{recipes.EngineCPU, why}, Offer{}, nil
	}
	offer, err := p.torch.Offer(ctx, r)
	switch {
	case err != nil && kind == recipes.EngineTorch:
		return Choice{}, Offer{}, badinput.Errorf("engine.kind: torch: %w", err)
	case err != nil:
		return Choice{recipes.EngineCPU, "auto: " + firstLine(err.Error())}, Offer{}, nil
	case kind == recipes.EngineTorch || offer.GPU:
		return Choice{recipes.EngineTorch, offer.Device}, offer, nil
	}
	return Choice{recipes.EngineCPU, "auto: PyTorch would run on " + offer.Device}, offer, nil
}

// Offer says what a PyTorch engine would run on here. The worker must run PyTorch engines.
func (p *Pool) Offer(ctx context.Context, r *recipes.Recipe) (Offer, error) {
	return p.torch.Offer(ctx, r)
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// Note puts the choice into the manifest that prepares a run.
func (c Choice) Note(m *schema.Manifest) {
	m.Note[schema.NoteEngine] = c.Kind
	if c.Why != "" {
		m.Note[schema.NoteEngineWhy] = c.Why
	}
}

// Chosen returns a recipe's engine with the choice that a manifest notes. Runs prepared by versions without this note
// ran on the CPU engine.
func Chosen(m schema.Manifest, e recipes.Engine) recipes.Engine {
	if e.Kind == recipes.EngineAuto {
		e.Kind = recipes.EngineCPU
		if kind := m.Note[schema.NoteEngine]; kind != "" {
			e.Kind = kind
		}
	}
	return e
}
