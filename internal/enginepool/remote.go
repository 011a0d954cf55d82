package enginepool

import (
	"context"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tinker"
	"github.com/ropewalk/ropewalk/recipes"
)

// openRemote opens an engine at a recipe's Tinker server.
func (p *Pool) openRemote(ctx context.Context, r *recipes.Recipe) (policy.Engine, error) {
	e, err := p.connectRemote(ctx, r)
	if err != nil {
		return nil, err
	}
	return e, nil
}

func (p *Pool) connectRemote(ctx context.Context, r *recipes.Recipe) (*tinker.Engine, error) {
	switch {
	case p.score == nil:
		return nil, errors.New("engine.tinker: this worker has no engine to compare a server with")
	case r.Engine.LoRA == nil || r.Engine.Tinker == nil:
		return nil, badinput.Errorf("engine.kind: tinker: a server trains an adapter, never the whole model")
	}
	shape, known, err := r.Policy.Shape()
	if err != nil {
		return nil, err
	}
	if !known {
		return nil, errors.New("engine.tinker: the model at policy.checkpoint is not known yet")
	}
	l := r.Engine.LoRA
	e, err := tinker.Open(ctx, tinker.Options{Server: *r.Engine.Tinker, Scratch: p.scratch,
		Score: p.score, LoRA: tinker.LoRA{Rank: l.Rank, Alpha: l.Alpha, Targets: l.Targets,
			Seed: seed.Derive("engine/lora", r.Seed)}}, shape)
	if err != nil {
		return nil, fmt.Errorf("engine.tinker: %w", err)
	}
	return e, nil
}

// surveyRemote establishes what a recipe's Tinker server is and how it turns numbers into gradients, and refuses a
// recipe that needs more than it offers: a person is there to correct it.
func (p *Pool) surveyRemote(ctx context.Context, r *recipes.Recipe, c *Choice) error {
	e, err := p.connectRemote(ctx, r)
	if err != nil {
		return unlessEnded(ctx, err)
	}
	defer e.Close()
	facts := e.Facts()
	c.Tinker, c.Why = &facts, facts.String()
	if r.Optimizer.ClipNorm > 0 && !facts.Convention.Clips {
		return badinput.Errorf("optimizer.clip_norm: must be 0: server %s does not clip gradients (it ignores "+
			"grad_clip_norm), got %v", facts.Server, r.Optimizer.ClipNorm)
	}
	if len(r.Engine.Servers) > 0 {
		if !facts.Downloads {
			return badinput.Errorf("engine.servers: server %s offers no download of the adapters that they would "+
				"sample with", facts.Server)
		}
		return nil
	}
	return check(e.Describe().Device, e.Capabilities(), r)
}
