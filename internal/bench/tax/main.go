// Command tax measures what the engine protocol costs: the time of Forward(keep) and Backward that is not spent in the
// models' own work, over all of it, on the torch engine with a 27 M model.
//
// Glossary. A *round* is one micro-batch forward and backward, with log-probabilities and entropies out and a cotangent for
// each of them back. Its *tax* is 1 − torch seconds / seconds here, both of the same calls: encoding, the socket, copies,
// the engine's own Python, and waiting.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// shape is the largest of bench-engine's models.
var shape = checkpoint.Shape{
	Vocab: 4096, Hidden: 512, Layers: 8, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 1536, Positions: 1024, RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
}

// least is how long a micro-batch has to take for the requirement to be about it.
const least = 100 * time.Millisecond

// most is the tax that is allowed.
const most = 0.02

type options struct {
	out, device, dtype string
	tokens, rounds     int
	threads            int
}

// result is what the command writes.
type result struct {
	Machine      machine.Machine `json:"machine"`
	Device       string          `json:"device"`
	Params       int64           `json:"params"`
	Tokens       int             `json:"tokens"` // of a micro-batch
	Rounds       int             `json:"rounds"`
	Milliseconds float64         `json:"milliseconds"` // of a round, median
	Tax          float64         `json:"tax"`          // median
	Worst        float64         `json:"worst"`
	// Of the tax, in milliseconds a round (medians): in the engine outside the models' work, and outside the engine's calls.
	EngineMilliseconds float64 `json:"engine_milliseconds"`
	HostMilliseconds   float64 `json:"host_milliseconds"`
	Allowed            float64 `json:"allowed"`
}

func main() { bench.Main("tax", run) }

func run(ctx context.Context, args []string) error {
	o := options{}
	flags := flag.NewFlagSet("tax", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", filepath.Join(".ropewalk", "bench", "tax.json"), "file of the JSON result")
	flags.StringVar(&o.device, "device", torch.CPU, "cpu or cuda")
	flags.StringVar(&o.dtype, "dtype", "", "float32 or bfloat16; default: the device's")
	flags.IntVar(&o.tokens, "tokens", 512, "tokens of a micro-batch")
	flags.IntVar(&o.rounds, "rounds", 20, "rounds to take the median of")
	flags.IntVar(&o.threads, "threads", 0, "threads; 0 means all cores")
	if err := flags.Parse(args); err != nil {
		return err
	}
	python, err := setup.Find(ctx, ".ropewalk")
	if err != nil {
		return err
	}
	e, err := torch.Open(ctx, torch.Options{Python: python.Path, Device: o.device, Dtype: o.dtype, Threads: o.threads})
	if err != nil {
		return err
	}
	defer e.Close()
	r, err := measure(ctx, e, o)
	if err != nil {
		return err
	}
	fmt.Printf("protocol tax: %.2f %% of %.0f ms (median of %d, worst %.2f %%; allowed %.0f %%; %.2f ms in the engine, %.2f ms outside it): micro-batches of %d tokens, %s, %s\n",
		100*r.Tax, r.Milliseconds, r.Rounds, 100*r.Worst, 100*r.Allowed, r.EngineMilliseconds, r.HostMilliseconds, r.Tokens, r.Device, r.Machine.BLAS)
	if err := bench.Write(o.out, r); err != nil {
		return err
	}
	switch {
	case r.Milliseconds < float64(least.Milliseconds()):
		return fmt.Errorf("a round takes %.0f ms, less than the %s that the requirement is about; give more --tokens", r.Milliseconds, least)
	case r.Tax > most:
		return fmt.Errorf("the tax is %.2f %%, more than the %.0f %% allowed", 100*r.Tax, 100*most)
	}
	return nil
}

func measure(ctx context.Context, e *torch.Engine, o options) (result, error) {
	dir, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return result{}, err
	}
	defer os.RemoveAll(dir)
	model := filepath.Join(dir, "model")
	if err := checkpoint.Init(model, shape, 1, nil); err != nil {
		return result{}, err
	}
	if err := e.Load(ctx, policy.RolePolicy, model, false); err != nil {
		return result{}, err
	}
	rows, cotangents := work(o.tokens)
	for range 3 { // to warm up
		if err := round(ctx, e, rows, cotangents); err != nil {
			return result{}, err
		}
	}
	r := result{Machine: machine.Of(e.Describe()), Device: e.Describe().Device, Params: shape.Params(), Tokens: o.tokens, Rounds: o.rounds, Allowed: most}
	var taxes, times, inEngine, outside []float64
	for range o.rounds {
		before := e.Usage()
		began := time.Now()
		if err := round(ctx, e, rows, cotangents); err != nil {
			return result{}, err
		}
		seconds := time.Since(began).Seconds()
		times = append(times, 1000*seconds)
		used := e.Usage().Since(before)
		taxes = append(taxes, 1-used.TorchSeconds/seconds)
		inEngine = append(inEngine, 1000*(used.EngineSeconds-used.TorchSeconds))
		outside = append(outside, 1000*(seconds-used.EngineSeconds))
		// Gradients add up; they are of no use here.
		if err := e.Discard(ctx, policy.RolePolicy); err != nil {
			return result{}, err
		}
	}
	r.Milliseconds, r.Tax, r.Worst = bench.Median(times), bench.Median(taxes), slices.Max(taxes)
	r.EngineMilliseconds, r.HostMilliseconds = bench.Median(inEngine), bench.Median(outside)
	return r, nil
}

// work is a micro-batch of four rows and its cotangents.
func work(tokens int) ([][]int32, policy.Cotangents) {
	random := rand.New(rand.NewPCG(1, 2))
	rows, c := make([][]int32, 4), policy.Cotangents{LogProbs: make([][]float32, 4), Entropies: make([][]float32, 4)}
	for i := range rows {
		for range max(2, tokens/len(rows)) {
			rows[i] = append(rows[i], int32(random.IntN(shape.Vocab)))
			c.LogProbs[i] = append(c.LogProbs[i], float32(random.NormFloat64()))
			c.Entropies[i] = append(c.Entropies[i], float32(random.NormFloat64()))
		}
	}
	return rows, c
}

func round(ctx context.Context, e policy.Engine, rows [][]int32, c policy.Cotangents) error {
	out, err := e.Forward(ctx, policy.ForwardRequest{
		Role: policy.RolePolicy, Sequences: rows, Temperature: 1, Outputs: policy.OutLogProb | policy.OutEntropy, Keep: true,
	})
	if err != nil {
		return err
	}
	return e.Backward(ctx, policy.RolePolicy, out.Kept, c)
}
