package main

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// measure gives our rates at one size.
func measure(ctx context.Context, e policy.Engine, s size, least time.Duration) (row, error) {
	tmp, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return row{}, err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "checkpoint")
	if err := checkpoint.Init(dir, s.shape, 1, nil); err != nil {
		return row{}, err
	}
	if err := e.Load(ctx, policy.RolePolicy, dir, false); err != nil {
		return row{}, err
	}
	r := row{Size: s.name, Params: s.shape.Params()}
	if r.Train, err = medianRate(s.train[0]*s.train[1], least, trainStep(ctx, e, s)); err != nil {
		return row{}, err
	}
	r.Generate, err = medianRate(s.generate[0]*s.generate[2], least, generateOnce(ctx, e, s))
	return r, err
}

// medianRate runs f once to warm up, then at least three times and for at least the given time.
func medianRate(tokens int, least time.Duration, f func() error) (float64, error) {
	if err := f(); err != nil {
		return 0, err
	}
	var rates []float64
	for began := time.Now(); len(rates) < 3 || time.Since(began) < least; {
		t := time.Now()
		if err := f(); err != nil {
			return 0, err
		}
		rates = append(rates, float64(tokens)/time.Since(t).Seconds())
	}
	slices.Sort(rates)
	return rates[len(rates)/2], nil
}

func randomRows(vocab, rows, length int) [][]int32 {
	r := rand.New(rand.NewPCG(1, 2))
	out := make([][]int32, rows)
	for i := range out {
		for range length {
			out[i] = append(out[i], int32(r.IntN(vocab)))
		}
	}
	return out
}

// trainStep is one step on the mean log-probability, as a language-modelling loss has it.
func trainStep(ctx context.Context, e policy.Engine, s size) func() error {
	rows := randomRows(s.shape.Vocab, s.train[0], s.train[1])
	c := policy.Cotangents{LogProbs: make([][]float32, len(rows))}
	for i, r := range rows {
		c.LogProbs[i] = slices.Repeat([]float32{-1 / float32(s.train[0]*(s.train[1]-1))}, len(r))
	}
	return func() error {
		out, err := e.Forward(ctx, policy.ForwardRequest{Role: policy.RolePolicy, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb, Keep: true})
		if err != nil {
			return err
		}
		if err := e.Backward(ctx, policy.RolePolicy, out.Kept, c); err != nil {
			return err
		}
		_, err = e.Step(ctx, policy.RolePolicy, policy.StepOptions{LR: 1e-4, Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01, ClipNorm: 1})
		return err
	}
}

func generateOnce(ctx context.Context, e policy.Engine, s size) func() error {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: randomRows(s.shape.Vocab, s.generate[0], s.generate[1]), Temperature: 1}
	for i := range req.Prefixes {
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, s.generate[2])
	}
	return func() error {
		_, err := e.Generate(ctx, req)
		return err
	}
}

//go:embed peer.py
var peerScript string

// peerRates are PyTorch's tokens per second.
type peerRates struct {
	Torch        string  `json:"torch"`
	Transformers string  `json:"transformers"`
	Train        float64 `json:"train"`
	Generate     float64 `json:"generate"`
}

func askPeer(ctx context.Context, python string, s size, threads int, seconds float64) (*peerRates, error) {
	job, err := json.Marshal(map[string]any{"threads": threads, "shape": s.shape, "train": s.train, "generate": s.generate, "seconds": seconds})
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, python, "-c", peerScript)
	cmd.Stdin = bytes.NewReader(job)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return nil, fmt.Errorf("%w: %s", err, lastLine(exit.Stderr))
	}
	if err != nil {
		return nil, err
	}
	p := &peerRates{}
	return p, json.Unmarshal(out, p)
}

func lastLine(b []byte) string {
	lines := strings.Split(strings.TrimSpace(string(b)), "\n")
	return lines[len(lines)-1]
}
