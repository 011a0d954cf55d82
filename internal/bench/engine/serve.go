package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

// serve is the CPU engine's side: it answers commands until its input ends.
func serve(ctx context.Context, j job, in io.Reader, out io.Writer) error {
	engine, err := cpu.Open(cpu.Options{Threads: j.Threads, BLAS: j.BLAS})
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := loadRandom(ctx, engine, j.Shape); err != nil {
		return err
	}
	commands := map[string]func() error{commandTrain: trainStep(ctx, engine, j), commandGenerate: generateOnce(ctx, engine, j)}
	answers := json.NewEncoder(out)
	for lines := bufio.NewScanner(in); lines.Scan(); {
		f, ok := commands[lines.Text()]
		if !ok {
			return fmt.Errorf("no such command: %q", lines.Text())
		}
		began, cpuBegan := time.Now(), processorTime()
		if err := f(); err != nil {
			return err
		}
		if err := answers.Encode(cost{Seconds: time.Since(began).Seconds(), CPU: (processorTime() - cpuBegan).Seconds()}); err != nil {
			return err
		}
	}
	return nil
}

// processorTime is what all threads of this process have used so far.
func processorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// loadRandom makes a policy with random weights resident.
func loadRandom(ctx context.Context, e policy.Engine, s checkpoint.Shape) error {
	tmp, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	dir := filepath.Join(tmp, "checkpoint")
	if err := checkpoint.Init(dir, s, 1, nil); err != nil {
		return err
	}
	return e.Load(ctx, policy.RolePolicy, dir, false)
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
func trainStep(ctx context.Context, e policy.Engine, j job) func() error {
	rows := randomRows(j.Shape.Vocab, j.Train[0], j.Train[1])
	c := policy.Cotangents{LogProbs: make([][]float32, len(rows))}
	for i, r := range rows {
		c.LogProbs[i] = slices.Repeat([]float32{-1 / float32(j.Train[0]*(j.Train[1]-1))}, len(r))
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

func generateOnce(ctx context.Context, e policy.Engine, j job) func() error {
	req := policy.GenerateRequest{Role: policy.RolePolicy, Prefixes: randomRows(j.Shape.Vocab, j.Generate[0], j.Generate[1]), Temperature: 1}
	for i := range req.Prefixes {
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, j.Generate[2])
	}
	return func() error {
		_, err := e.Generate(ctx, req)
		return err
	}
}
