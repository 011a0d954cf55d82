package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

// updateSteps is the number of optimiser steps of an update whose checkpoint is compared.
const updateSteps = 2

// deterministic measures the cost of equal bytes and checks that two updates with equal inputs have them, weights and
// optimiser. On a processor there is no cost, because there the engine is always deterministic.
func deterministic(ctx context.Context, l *lab, r *bench.Report) error {
	s, err := l.smallest()
	if err != nil {
		return err
	}
	if l.onGPU() {
		var rates [2]float64
		for i, with := range []settings{{dtype: l.dtype(), checkpointing: "on"}, l.repeatable()} {
			e, err := l.loaded(ctx, s, with)
			if err != nil {
				return err
			}
			p, err := l.timeUpdates(ctx, e, s)
			if err != nil {
				return err
			}
			r.Add([]string{s.name + ": without", s.name + ": with"}[i], p.figures()...)
			rates[i] = p.tokens
		}
		r.Add(s.name+": its cost", bench.Of("share of the speed", 1-rates[1]/rates[0]))
	}
	e, err := l.withEngine(ctx, l.repeatable())
	if err != nil {
		return err
	}
	var digests [2]string
	for i := range digests {
		if digests[i], err = l.update(ctx, e, s); err != nil {
			return err
		}
	}
	r.Note(s.name+": checkpoints of two updates", "%.16s, %.16s", digests[0], digests[1])
	if digests[0] != digests[1] {
		return errors.New("two updates with equal inputs gave different bytes")
	}
	return nil
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

// update loads a model, takes optimiser steps, saves the checkpoint, removes it and returns its digest.
func (l *lab) update(ctx context.Context, e *torch.Engine, s size) (string, error) {
	if err := l.load(ctx, e, s, true); err != nil {
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

// kill ends the engine with SIGKILL between a micro-batch's forward and its backward pass, in the second optimiser
// step, and does the update again. Times count from the kill.
func kill(ctx context.Context, l *lab, r *bench.Report) error {
	s, err := l.smallest()
	if err != nil {
		return err
	}
	e, err := l.withEngine(ctx, l.repeatable())
	if err != nil {
		return err
	}
	began := time.Now()
	want, err := l.update(ctx, e, s)
	if err != nil {
		return err
	}
	undisturbed := time.Since(began).Seconds()
	if began, err = l.killInMidUpdate(ctx, e, s); err != nil {
		return err
	}
	noticed := time.Since(began).Seconds()
	if err := l.load(ctx, e, s, true); err != nil {
		return fmt.Errorf("load after the kill: %w", err)
	}
	serving := time.Since(began).Seconds()
	got, err := l.update(ctx, e, s)
	if err != nil {
		return fmt.Errorf("update after the kill: %w", err)
	}
	r.Add(s.name, bench.Of("s to notice", noticed), bench.Of("until a model is loaded again", serving),
		bench.Of("until the update is redone", time.Since(began).Seconds()), bench.Of("undisturbed", undisturbed))
	r.Note(s.name+": checkpoints, undisturbed and redone", "%.16s, %.16s", want, got)
	if got != want {
		return errors.New("the update that was done again gave other bytes")
	}
	return nil
}

// killInMidUpdate returns the time of the kill, once the engine is known to be lost.
func (l *lab) killInMidUpdate(ctx context.Context, e *torch.Engine, s size) (at time.Time, err error) {
	if err := l.load(ctx, e, s, true); err != nil {
		return at, err
	}
	if err := oneStep(ctx, e, s, 0); err != nil {
		return at, err
	}
	batch := s.microbatch(1)
	out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: batch.Rows, Temperature: 1,
		Outputs: policy.OutLogProb, Keep: true})
	if err != nil {
		return at, err
	}
	at = time.Now()
	if err := syscall.Kill(e.PID(), syscall.SIGKILL); err != nil {
		return at, fmt.Errorf("kill process %d: %w", e.PID(), err)
	}
	err = e.Backward(ctx, policy.RolePolicy, out.Kept, batch.Cotangents)
	if !errors.Is(err, policy.ErrLost) {
		return at, fmt.Errorf("a call of a killed engine ended with: %w", errors.Join(errors.New("not lost"), err))
	}
	return at, nil
}
