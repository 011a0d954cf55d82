// Command tax measures the cost of the engine protocol: the share of the time of Forward(keep) and Backward that is not
// spent in the models' own work, on the torch engine with a 27 M model.
//
// Glossary. A *round* is one micro-batch forward and backward, with log-probabilities and entropies as outputs and a
// cotangent for each of them. Its *tax* is 1 − torch seconds / seconds measured here, both for the same calls
// (work.Cost).
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/torch"
	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// shape is the largest of bench-engine's models.
var shape = checkpoint.Shape{
	Vocab: 4096, Hidden: 512, Layers: 8, Heads: 8, KVHeads: 4, HeadDim: 64, FFN: 1536, Positions: 1024,
	RopeTheta: 10000, NormEps: 1e-6, Pad: -1,
}

// least is the least time of a micro-batch to which the requirement applies.
const least = 100 * time.Millisecond

// most is the allowed tax.
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
	// The two parts of the tax in milliseconds per round (medians): in the engine outside the models' work, and outside
	// the engine.
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
	fmt.Printf("protocol tax: %.2f %% of %.0f ms (median of %d, worst %.2f %%; allowed %.0f %%; "+
		"%.2f ms in the engine, %.2f ms outside it): micro-batches of %d tokens, %s, %s\n",
		100*r.Tax, r.Milliseconds, r.Rounds, 100*r.Worst, 100*r.Allowed, r.EngineMilliseconds, r.HostMilliseconds,
		r.Tokens, r.Device, r.Machine.BLAS)
	if err := bench.Write(o.out, r); err != nil {
		return err
	}
	switch {
	case r.Milliseconds < float64(least.Milliseconds()):
		return fmt.Errorf(
			"a round takes %.0f ms, less than the %s that the requirement is about; give more --tokens", r.Milliseconds,
			least,
		)
	case r.Tax > most:
		return fmt.Errorf("the tax is %.2f %%, more than the %.0f %% allowed", 100*r.Tax, 100*most)
	}
	return nil
}

func measure(ctx context.Context, e *torch.Engine, o options) (result, error) {
	if err := work.LoadRandom(ctx, e, shape); err != nil {
		return result{}, err
	}
	batch := microBatch(o.tokens)
	round := bench.Side[work.Cost]{Name: "micro-batch", Measure: func(ctx context.Context) (work.Cost, error) {
		return batch.Measure(ctx, e)
	}}
	if _, err := bench.TakeTurns(ctx, bench.Rounds(3), round); err != nil { // to warm up
		return result{}, err
	}
	costs, err := bench.TakeTurns(ctx, bench.Rounds(o.rounds), round)
	if err != nil {
		return result{}, err
	}
	median := func(figure func(work.Cost) float64) float64 { return bench.Median(bench.Column(costs[0], figure)) }
	return result{
		Machine: machine.Of(e.Describe()), Device: e.Describe().Device, Params: shape.Params(), Tokens: o.tokens,
		Rounds: o.rounds, Allowed: most,
		Milliseconds: median(func(c work.Cost) float64 { return 1000 * c.Seconds }),
		Tax:          median(work.Cost.Tax),
		Worst:        slices.Max(bench.Column(costs[0], work.Cost.Tax)),
		EngineMilliseconds: median(func(c work.Cost) float64 {
			return 1000 * (c.Used.EngineSeconds - c.Used.TorchSeconds)
		}),
		HostMilliseconds: median(func(c work.Cost) float64 { return 1000 * (c.Seconds - c.Used.EngineSeconds) }),
	}, nil
}

// microBatch has four rows, with random cotangents for log-probabilities and entropies.
func microBatch(tokens int) work.MicroBatch {
	random := rand.New(rand.NewPCG(1, 2))
	rows, c := make([][]int32, 4), policy.Cotangents{LogProbs: make([][]float32, 4), Entropies: make([][]float32, 4)}
	for i := range rows {
		for range max(2, tokens/len(rows)) {
			rows[i] = append(rows[i], int32(random.IntN(shape.Vocab)))
			c.LogProbs[i] = append(c.LogProbs[i], float32(random.NormFloat64()))
			c.Entropies[i] = append(c.Entropies[i], float32(random.NormFloat64()))
		}
	}
	return work.MicroBatch{Rows: rows, Cotangents: c}
}
