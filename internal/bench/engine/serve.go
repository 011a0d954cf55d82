package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// serve is the CPU engine's side: it answers commands until its input ends.
func serve(ctx context.Context, j job, in io.Reader, out io.Writer) error {
	engine, err := cpu.Open(cpu.Options{Threads: j.Threads, BLAS: j.BLAS})
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := work.LoadRandom(ctx, engine, j.Shape); err != nil {
		return err
	}
	commands := map[string]func() error{commandTrain: trainStep(ctx, engine, j),
		commandGenerate: generateOnce(ctx, engine, j)}
	answers := json.NewEncoder(out)
	for questions := json.NewDecoder(in); ; {
		var command string
		if err := questions.Decode(&command); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		f, ok := commands[command]
		if !ok {
			return fmt.Errorf("no such command: %q", command)
		}
		began := time.Now()
		if err := f(); err != nil {
			return err
		}
		if err := answers.Encode(time.Since(began).Seconds()); err != nil {
			return err
		}
	}
}

// trainStep is one optimiser step of language modelling.
func trainStep(ctx context.Context, e policy.Engine, j job) func() error {
	rows := randomRows(j.Shape.Vocab, j.Train[0], j.Train[1])
	batch := work.MicroBatch{Rows: rows, Cotangents: work.LanguageModelling(rows, j.Train[0]*(j.Train[1]-1))}
	return func() error {
		if err := batch.Run(ctx, e); err != nil {
			return err
		}
		_, err := e.Step(
			ctx, policy.RolePolicy,
			policy.StepOptions{LR: 1e-4,
				Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01}, ClipNorm: 1},
		)
		return err
	}
}

// randomRows are the same rows at each call.
func randomRows(vocab, rows, length int) [][]int32 {
	return work.RandomRows(rand.New(rand.NewPCG(1, 2)), vocab, rows, length)
}

func generateOnce(ctx context.Context, e policy.Engine, j job) func() error {
	req := policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: randomRows(j.Shape.Vocab, j.Generate[0], j.Generate[1]), Temperature: 1,
	}
	for i := range req.Prefixes {
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, j.Generate[2])
	}
	return func() error {
		_, err := e.Generate(ctx, req)
		return err
	}
}
