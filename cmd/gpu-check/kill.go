package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/policy"
)

// killFigures are the costs of a killed engine.
type killFigures struct {
	Size   string `json:"size"`
	Killed string `json:"killed"` // when
	// Times count from the kill. Noticed ends with the error, Serving with a model loaded in a new engine, and Redone
	// with the repeated update. Undisturbed is the time of an update without a kill, with load and save.
	Noticed     float64  `json:"noticed_seconds"`
	Serving     float64  `json:"serving_seconds"`
	Redone      float64  `json:"redone_seconds"`
	Undisturbed float64  `json:"undisturbed_seconds"`
	Digests     []string `json:"digests"` // undisturbed, redone
}

// kill ends the engine with SIGKILL between a micro-batch's forward and its backward pass, in the second optimiser
// step, and does the update again.
func kill(ctx context.Context, l *lab) (figures, error) {
	s, err := l.smallest()
	if err != nil {
		return nil, err
	}
	dir, err := l.model(s)
	if err != nil {
		return nil, err
	}
	e, err := l.withEngine(ctx, l.repeatable())
	if err != nil {
		return nil, err
	}
	out := &killFigures{Size: s.name, Killed: "between a forward and its backward pass, in the second optimiser step"}
	began := time.Now()
	want, err := l.update(ctx, e, s, dir)
	if err != nil {
		return out, err
	}
	out.Undisturbed, out.Digests = time.Since(began).Seconds(), []string{want}

	began, err = killInMidUpdate(ctx, e, s, dir)
	if err != nil {
		return out, err
	}
	out.Noticed = time.Since(began).Seconds()
	if err := e.Load(ctx, policy.RolePolicy, dir, true); err != nil {
		return out, fmt.Errorf("load after the kill: %w", err)
	}
	out.Serving = time.Since(began).Seconds()
	got, err := l.update(ctx, e, s, dir)
	if err != nil {
		return out, fmt.Errorf("update after the kill: %w", err)
	}
	out.Redone, out.Digests = time.Since(began).Seconds(), append(out.Digests, got)
	if got != want {
		return out, errors.New("the update that was done again gave other bytes")
	}
	return out, nil
}

// killInMidUpdate returns the time of the kill, once the engine is known to be lost.
func killInMidUpdate(ctx context.Context, e *torch.Engine, s size, dir string) (time.Time, error) {
	if err := e.Load(ctx, policy.RolePolicy, dir, true); err != nil {
		return time.Time{}, err
	}
	if err := oneStep(ctx, e, s, 0); err != nil {
		return time.Time{}, err
	}
	batch := s.microbatch(1)
	out, err := e.Forward(
		ctx,
		policy.ForwardRequest{
			Role: policy.RolePolicy, Sequences: batch.Rows, Temperature: 1, Outputs: policy.OutLogProb, Keep: true,
		},
	)
	if err != nil {
		return time.Time{}, err
	}
	at := time.Now()
	if err := syscall.Kill(e.PID(), syscall.SIGKILL); err != nil {
		return at, fmt.Errorf("kill process %d: %w", e.PID(), err)
	}
	err = e.Backward(ctx, policy.RolePolicy, out.Kept, batch.Cotangents)
	if !errors.Is(err, policy.ErrLost) {
		return at, fmt.Errorf("a call of a killed engine ended with: %w", errors.Join(errors.New("not lost"), err))
	}
	return at, nil
}

func (f *killFigures) rows() []row {
	if len(f.Digests) < 2 {
		return nil // the part has not finished
	}
	return []row{
		{what: f.Size + ": killed", value: f.Killed},
		{what: f.Size + ": noticed after", value: fmt.Sprintf("%.1f s", f.Noticed)},
		{what: f.Size + ": a model is loaded again after", value: fmt.Sprintf("%.1f s", f.Serving)},
		{
			what:  f.Size + ": update redone after",
			value: fmt.Sprintf("%.1f s; undisturbed it takes %.1f s", f.Redone, f.Undisturbed),
		},
		{f.Size + ": checkpoints, undisturbed and redone", brief(f.Digests[0]) + ", " + brief(f.Digests[1]), "equal"},
	}
}
