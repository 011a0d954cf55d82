package main

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

//go:embed peer.py
var peerScript string

// errPeerMemory says that the plain loop did not fit the device's memory.
var errPeerMemory = errors.New("the plain loop ran out of memory")

type trainJob struct {
	Job           string           `json:"job"`
	Shape         checkpoint.Shape `json:"shape"`
	Row           int              `json:"row"`
	Microbatches  int              `json:"microbatches"`
	Checkpointing bool             `json:"checkpointing"`
	Loop          string           `json:"loop"`
	Steps         int              `json:"steps"`
	Seconds       float64          `json:"seconds"`
}

type trained struct {
	First float64   `json:"first"`
	Steps []float64 `json:"steps"`
	Peak  int64     `json:"peak"`
	Error string    `json:"error"`
}

type generateJob struct {
	Job     string           `json:"job"`
	Shape   checkpoint.Shape `json:"shape"`
	Batch   int              `json:"batch"`
	Prompt  int              `json:"prompt"`
	New     int              `json:"new"`
	Repeats int              `json:"repeats"`
}

type generatedIn struct {
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
func (l *lab) ask(ctx context.Context, job, into any) error {
	if err := l.startPeer(ctx); err != nil {
		return err
	}
	err := l.peer.Ask(ctx, job, into)
	if err != nil {
		l.endPeer()
	}
	return err
}

func (l *lab) endPeer() {
	if l.peer != nil {
		l.peer.Kill()
		l.peer = nil
	}
}

// failure is an answer's error.
func failure(text string) error {
	switch text {
	case "":
		return nil
	case "out_of_memory":
		return errPeerMemory
	}
	return errors.New("the peer: " + text)
}
