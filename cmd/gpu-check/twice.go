package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
)

// deterministicFigures are the cost of equal bytes.
type deterministicFigures struct {
	Size string `json:"size"`
	// Plain and Deterministic are the speeds without and with determinism. On a processor they are left out, because
	// there the engine is always deterministic.
	Plain         *pace `json:"plain,omitempty"`
	Deterministic *pace `json:"deterministic,omitempty"`
	// Cost is the share of the speed that is lost.
	Cost float64 `json:"cost"`
	// Digests are the digests of the checkpoints (weights and optimiser) of updates with equal inputs.
	Digests []string `json:"digests"`
}

// updateSteps is the number of optimiser steps of an update whose checkpoint is compared.
const updateSteps = 2

// deterministic measures the cost of equal bytes and checks that two updates have them.
func deterministic(ctx context.Context, l *lab) (figures, error) {
	s, err := l.smallest()
	if err != nil {
		return nil, err
	}
	dir, err := l.model(s)
	if err != nil {
		return nil, err
	}
	out := &deterministicFigures{Size: s.name}
	if l.onGPU() {
		if out.Plain, err = l.paceWith(ctx, s, dir, settings{dtype: l.dtype(), checkpointing: "on"}); err != nil {
			return out, err
		}
		if out.Deterministic, err = l.paceWith(ctx, s, dir, l.repeatable()); err != nil {
			return out, err
		}
		out.Cost = 1 - out.Deterministic.TokensPerSecond/out.Plain.TokensPerSecond
	}
	e, err := l.withEngine(ctx, l.repeatable())
	if err != nil {
		return out, err
	}
	for range 2 {
		digest, err := l.update(ctx, e, s, dir)
		if err != nil {
			return out, err
		}
		out.Digests = append(out.Digests, digest)
	}
	if out.Digests[0] != out.Digests[1] {
		return out, errors.New("two updates with equal inputs gave different bytes")
	}
	return out, nil
}

func (l *lab) repeatable() settings {
	return settings{dtype: l.dtype(), deterministic: true, checkpointing: "on"}
}

func (l *lab) smallest() (size, error) {
	sizes, err := l.sizes("0.6B")
	if err != nil {
		return size{}, err
	}
	return sizes[0], nil
}

func (l *lab) paceWith(ctx context.Context, s size, dir string, with settings) (*pace, error) {
	e, err := l.withEngine(ctx, with)
	if err != nil {
		return nil, err
	}
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return nil, err
	}
	p, err := l.timeUpdates(ctx, e, s)
	return &p, err
}

// update loads a model, takes optimiser steps, saves the checkpoint, removes it and returns its digest.
func (l *lab) update(ctx context.Context, e *torch.Engine, s size, from string) (string, error) {
	if err := e.Load(ctx, policy.RolePolicy, from, true); err != nil {
		return "", err
	}
	for i := range updateSteps {
		if err := oneStep(ctx, e, s, uint64(i)); err != nil {
			return "", err
		}
	}
	to := filepath.Join(l.dir, "updated")
	defer os.RemoveAll(to)
	return e.Save(ctx, policy.RolePolicy, to)
}

func (f *deterministicFigures) rows() []row {
	var out []row
	if f.Deterministic != nil && f.Plain != nil {
		out = append(out,
			row{what: f.Size + ": without", value: paceText(*f.Plain)},
			row{what: f.Size + ": with", value: paceText(*f.Deterministic)},
			row{what: f.Size + ": its cost", value: fmt.Sprintf("%.1f%%", 100*f.Cost)})
	}
	if len(f.Digests) == 2 {
		out = append(
			out,
			row{f.Size + ": checkpoints of two updates", brief(f.Digests[0]) + ", " + brief(f.Digests[1]), "equal"},
		)
	}
	return out
}

func brief(digest string) string { return digest[:min(16, len(digest))] }
