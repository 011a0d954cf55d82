// Command engine measures the CPU engine: training and generation tokens per second at three sizes, and, where a
// Python with torch and transformers is found (ROPEWALK_PYTHON, else python3), PyTorch's at the same sizes in
// the same run.
//
// Glossary. A *training step* is Forward with log-probabilities, Backward with a cotangent per token, and Step. A
// *peer* is the other implementation. Rates are medians over repetitions after one warm-up.
package main

import (
	"context"
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

// size is one model and the work it is measured with.
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
	}
}

// row is the result of one size.
type row struct {
	Size     string  `json:"size"`
	Params   int64   `json:"params"`
	Train    float64 `json:"train_tokens_per_second"`
	Generate float64 `json:"generate_tokens_per_second"`
	// Peer is nil where Python, torch or transformers is missing.
	Peer          *peerRates `json:"peer,omitempty"`
	TrainRatio    float64    `json:"train_ratio,omitempty"`
	GenerateRatio float64    `json:"generate_ratio,omitempty"`
}

type result struct {
	Machine machine.Machine `json:"machine"`
	Rows    []row           `json:"rows"`
	// NoPeer says why there is no peer.
	NoPeer string `json:"no_peer,omitempty"`
}

func main() { bench.Main("engine", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("engine", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "engine.json"), "file of the JSON result")
	threads := flags.Int("threads", 0, "threads; 0 means all cores")
	seconds := flags.Float64("seconds", 4, "least time of each measurement")
	blas := flags.String("blas", "", "openblas or gonum; default the faster one")
	if err := flags.Parse(args); err != nil {
		return err
	}
	engine, err := cpu.Open(cpu.Options{Threads: *threads, BLAS: *blas})
	if err != nil {
		return err
	}
	defer engine.Close()
	d := engine.Describe()
	res := result{Machine: machine.Of(d)}
	interpreter, err := python.Find(ctx, "torch", "transformers")
	if err != nil {
		res.NoPeer = err.Error()
	}
	for _, s := range sizes() {
		r, err := measure(ctx, engine, s, time.Duration(*seconds*float64(time.Second)))
		if err != nil {
			return fmt.Errorf("measure %s: %w", s.name, err)
		}
		if interpreter != "" {
			p, err := askPeer(ctx, interpreter, s, d.Threads, *seconds)
			if err != nil {
				return fmt.Errorf("measure PyTorch at %s: %w", s.name, err)
			}
			r.Peer, r.TrainRatio, r.GenerateRatio = p, r.Train/p.Train, r.Generate/p.Generate
		}
		res.Rows = append(res.Rows, r)
	}
	print(res)
	return bench.Write(*out, res)
}

func print(res result) {
	m := res.Machine
	fmt.Printf("CPU engine: %s, %d threads, %s\n", m.CPU, m.Threads, m.BLAS)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "size\tparams\ttrain tok/s\tPyTorch\tratio\tgenerate tok/s\tPyTorch\tratio\t")
	for _, r := range res.Rows {
		fmt.Fprintf(w, "%s\t%d\t%.0f\t", r.Size, r.Params, r.Train)
		if r.Peer == nil {
			fmt.Fprintf(w, "-\t-\t%.0f\t-\t-\t\n", r.Generate)
			continue
		}
		fmt.Fprintf(w, "%.0f\t%.2f\t%.0f\t%.0f\t%.2f\t\n", r.Peer.Train, r.TrainRatio, r.Generate, r.Peer.Generate, r.GenerateRatio)
	}
	w.Flush()
	if res.NoPeer != "" {
		fmt.Println("no PyTorch beside it:", res.NoPeer)
	}
	if m.Advice != "" {
		fmt.Println("advice:", m.Advice)
	}
}
