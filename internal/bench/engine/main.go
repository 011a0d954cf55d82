// Command engine measures the CPU engine: training and generation in tokens per second, and peak memory, at three
// sizes. If it finds a Python with torch and transformers (ROPEWALK_PYTHON, else python3), it measures PyTorch at the
// same sizes in the same run.
//
// Glossary. A *training step* is Forward with log-probabilities, Backward with a cotangent per token, and Step. A
// *side* is one implementation at one size, in its own process, which does one training step or one generation for each
// command. Rates are medians over the turns of both sides, and ratios are medians of the ratios within a turn.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"text/tabwriter"
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

// row is the result of one size. PyTorch's fields are 0 if Python, torch or transformers is missing.
type row struct {
	Params        int64   `json:"params"`
	Turns         int     `json:"turns"` // of training; generation gets the same time
	Train         float64 `json:"train_tokens_per_s"`
	TorchTrain    float64 `json:"torch_train_tokens_per_s"`
	TrainRatio    float64 `json:"train_ratio"`
	Generate      float64 `json:"generate_tokens_per_s"`
	HFGenerate    float64 `json:"hf_generate_tokens_per_s"`
	GenerateRatio float64 `json:"generate_ratio"`
	Peak          float64 `json:"peak_mb"` // of resident memory of the side's process, MB of 10⁶ bytes
	TorchPeak     float64 `json:"torch_peak_mb"`
	// Processor microseconds per token, which a busy machine stretches less than the clock does.
	TrainCPU      float64 `json:"train_cpu_us_per_token"`
	TorchTrainCPU float64 `json:"torch_train_cpu_us_per_token"`
	GenerateCPU   float64 `json:"generate_cpu_us_per_token"`
	HFGenerateCPU float64 `json:"hf_generate_cpu_us_per_token"`
}

func main() { bench.Main("engine", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "engine.json"), "file of the JSON result")
	threads := flags.Int("threads", 0, "threads; 0 means all cores")
	seconds := flags.Float64("seconds", 8, "least time of each measurement, both sides together")
	only := flags.String("only", "", "measure one size alone")
	blas := flags.String("blas", "", "own, openblas or gonum; default the faster one")
	side := flags.String("side", "", "be a side: a job as JSON; commands come on standard input")
	if err := flags.Parse(args); err != nil {
		return err
	}
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
	interpreter, err := python.Find(ctx, "torch", "transformers")
	fmt.Printf("CPU engine: %s, %d threads, %s\n", m.CPU, m.Threads, m.BLAS)
	if err != nil {
		fmt.Println("without PyTorch to compare with:", err)
	}
	if m.Advice != "" {
		fmt.Println("advice:", m.Advice)
	}
	res := map[string]row{}
	for _, s := range sizes() {
		if *only != "" && *only != s.name {
			continue
		}
		j := job{Threads: m.Threads, BLAS: *blas, Shape: s.shape, Train: s.train, Generate: s.generate}
		if res[s.name], err = measure(ctx, interpreter, j, time.Duration(*seconds*float64(time.Second))); err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		// Written after each size, because on a busy machine the next may take long.
		if err := bench.Write(*out, res); err != nil {
			return err
		}
	}
	print(res)
	return nil
}

func print(res map[string]row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "size\tparams\ttrain tok/s\tPyTorch\tratio\tCPU µs/tok\tPyTorch\t"+
		"generate tok/s\ttransformers\tratio\tCPU µs/tok\ttransformers\tpeak MB\tPyTorch\t")
	for _, s := range sizes() {
		if r, ok := res[s.name]; ok {
			fmt.Fprintf(w, "%s\t%d\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%.0f\t%.0f\t%.2f\t%.1f\t%.1f\t%.0f\t%.0f\t\n", s.name,
				r.Params, r.Train, r.TorchTrain, r.TrainRatio, r.TrainCPU, r.TorchTrainCPU,
				r.Generate, r.HFGenerate, r.GenerateRatio, r.GenerateCPU, r.HFGenerateCPU, r.Peak, r.TorchPeak)
		}
	}
	w.Flush()
}
