// Package engine measures the CPU engine: training and generation in tokens per second, and peak memory, at four sizes.
// If it finds a Python with torch and transformers (ROPEWALK_PYTHON, else python3), it measures PyTorch at the same
// sizes in the same run.
//
// Glossary. A *training step* is Forward with log-probabilities, Backward with a cotangent per token, and Step. A
// *side* is one implementation at one size, in its own process, which does one training step or one generation for each
// command. Rates are medians over the turns of both sides, and ratios are medians of the ratios within a turn.
package engine

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
)

// size is one model and its work.
type size struct {
	name     string
	shape    checkpoint.Shape
	train    [2]int // batch, length
	generate [3]int // batch, prompt, new tokens
}

func sizes() []size {
	shape := func(vocab, hidden, layers, heads, kv, dim, ffn int) checkpoint.Shape {
		return checkpoint.Shape{
			Vocab: vocab, Hidden: hidden, Layers: layers, Heads: heads, KVHeads: kv, HeadDim: dim, FFN: ffn,
			Positions: 1024, RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
		}
	}
	return []size{
		{"0.1M", shape(512, 64, 2, 2, 1, 32, 128), [2]int{64, 96}, [3]int{64, 32, 64}},
		{"3.3M", shape(512, 256, 4, 8, 4, 32, 768), [2]int{32, 256}, [3]int{32, 32, 64}},
		{"27M", shape(4096, 512, 8, 8, 4, 64, 1536), [2]int{8, 512}, [3]int{8, 32, 64}},
		{"135M", shape(49152, 576, 30, 9, 3, 64, 1536), [2]int{16, 48}, [3]int{16, 32, 16}}, // those of SmolLM2-135M
	}
}

// name is that of the case.
const name = "engine"

// Case measures the engine.
var Case = bench.Case{Name: name, Doc: "the CPU engine next to PyTorch", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	threads := flags.Int("threads", 0, "threads; 0 means all cores")
	seconds := flags.Float64("seconds", 8, "least time of each measurement, both sides together")
	only := flags.String("only", "", "measure one size alone")
	blas := flags.String("blas", "", "own, openblas or gonum; default the faster one")
	side := flags.String("side", "", "be a side: a job as JSON; commands come on standard input")
	return func(ctx context.Context, r *bench.Report) error {
		if *side != "" {
			var j job
			if err := json.Unmarshal([]byte(*side), &j); err != nil {
				return fmt.Errorf("read the job: %w", err)
			}
			return serve(ctx, j, os.Stdin, os.Stdout)
		}
		engine, err := cpu.Open(cpu.Options{Threads: *threads, BLAS: *blas})
		if err != nil {
			return err
		}
		m := machine.Of(engine.Describe())
		engine.Close()
		r.Note("machine", "%s, %d threads, %s %s", m.CPU, m.Threads, m.BLAS, m.Advice)
		interpreter, err := python.Find(ctx, "torch", "transformers")
		if err != nil {
			r.Note("without PyTorch to compare with", "%v", err)
		}
		for _, s := range sizes() {
			if *only != "" && *only != s.name {
				continue
			}
			j := job{Threads: m.Threads, BLAS: *blas, Shape: s.shape, Train: s.train, Generate: s.generate}
			found, err := measure(ctx, interpreter, j, time.Duration(*seconds*float64(time.Second)))
			if err != nil {
				return fmt.Errorf("measure %s: %w", s.name, err)
			}
			r.Add(s.name, found...)
		}
		return nil
	}
}
