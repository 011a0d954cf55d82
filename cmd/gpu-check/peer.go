package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy"
)

//go:embed peer.py
var peerScript string

// errPeerMemory says that the plain loop did not fit the device's memory.
var errPeerMemory = errors.New("the plain loop ran out of memory")

// job is what the peer is asked to do: its name as "job", a model's shape, and the settings that peer.py reads for it.
type job map[string]any

// answer holds the seconds that a job took: of the first step of a training, of its other steps, or of each generation.
type answer struct {
	First   float64   `json:"first"`
	Steps   []float64 `json:"steps"`
	Seconds []float64 `json:"seconds"`
	Error   string    `json:"error"`
}

// startPeer starts the peer if there is none.
func (l *lab) startPeer(ctx context.Context) error {
	if l.peer != nil {
		return nil
	}
	python, err := l.python()
	if err != nil {
		return err
	}
	cmd := exec.Command(python, "-I")
	cmd.Dir = l.dir
	cmd.Env = append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%d", l.threads()))
	// The peer outlives a part, and the part's context ends only the question that it asks.
	l.peer, err = bench.StartScript(context.WithoutCancel(ctx), "the peer", cmd, peerScript, l.o.device)
	if err != nil {
		return err
	}
	var versions struct{ Torch, Transformers string }
	if err := l.peer.Hear(ctx, &versions); err != nil {
		l.endPeer()
		return fmt.Errorf("start the peer: %w", err)
	}
	l.versions["torch"], l.versions["transformers"] = versions.Torch, versions.Transformers
	return nil
}

// ask gives the peer a job and waits for its answer. A peer that is lost is started again by the next job.
func (l *lab) ask(ctx context.Context, j job) (a answer, err error) {
	if err := l.startPeer(ctx); err != nil {
		return a, err
	}
	if err := l.peer.Ask(ctx, j, &a); err != nil {
		l.endPeer()
		return a, err
	}
	switch a.Error {
	case "":
		return a, nil
	case "out_of_memory":
		return a, errPeerMemory
	}
	return a, errors.New("the peer: " + a.Error)
}

func (l *lab) endPeer() {
	if l.peer != nil {
		l.peer.Kill()
		l.peer = nil
	}
}

// against measures updates of the engine and of the plain loop, one after the other at each size. Both sides recompute
// activations, because otherwise the plain loop of the largest size does not fit the device.
func against(ctx context.Context, l *lab, r *bench.Report) error {
	return l.each(ctx, r, l.againstOf, "0.6B", "1.7B", "4B")
}

func (l *lab) againstOf(ctx context.Context, r *bench.Report, s size) error {
	e, err := l.loaded(ctx, s, settings{dtype: l.dtype(), checkpointing: "on"})
	if err != nil {
		return err
	}
	ours, err := l.timeUpdates(ctx, e, s)
	if err != nil {
		return err
	}
	if err := e.Unload(ctx, policy.RolePolicy); err != nil { // the peer needs the memory
		return err
	}
	r.Add(s.name+": engine", ours.figures()...)
	best := 0.0
	for _, loop := range l.loops() {
		name := fmt.Sprintf("%s: plain loop, %s", s.name, loop)
		found, err := l.runLoop(ctx, s, loop)
		if errors.Is(err, errPeerMemory) {
			r.Note(name, "%v", err)
			continue
		}
		if err != nil {
			return err
		}
		r.Add(name, found.figures()...)
		best = max(best, found.tokens)
	}
	if best > 0 {
		r.Add(s.name+": engine ÷ the faster loop", bench.Of("ratio", ours.tokens/best).AtLeast(1))
	}
	return nil
}

// loops are the plain loops. autocast trains float32 weights under torch.autocast, masters trains a bfloat16 model with
// float32 masters, and float32 uses neither.
func (l *lab) loops() []string {
	if l.onGPU() {
		return []string{"autocast", "masters"}
	}
	return []string{"float32"}
}

func (l *lab) runLoop(ctx context.Context, s size, loop string) (pace, error) {
	steps, least := l.enough()
	a, err := l.ask(ctx, job{"job": "train", "shape": s.shape, "row": s.row, "microbatches": s.micro,
		"checkpointing": true, "loop": loop, "steps": steps, "seconds": least.Seconds()})
	if err != nil {
		return pace{}, err
	}
	return l.paced(s, a.First, a.Steps), nil
}
