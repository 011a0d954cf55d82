// Command rl measures the value, cotangents and statistics of every loss of package rl/loss, over 256 rows of 4,096
// tokens in float32. If it finds a Python with torch (ROPEWALK_PYTHON, else python3), it measures PyTorch's forward and
// backward of the same loss, with the same masks and statistics, in the same run. It runs from the repository's root.
//
// Glossary. *Tokens* are those under the mask. Both sides use one thread. They take turns, so that other load on the
// machine affects both. Rates are medians. *Scaling* is PPO's rate on two cores over that on one.
package main

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/rl/loss/losstest"
)

// row is the result of one loss. Without PyTorch its fields are missing.
type row struct {
	Go     float64 `json:"go_tokens_per_s"`
	Torch  float64 `json:"torch_tokens_per_s,omitempty"`
	Ratio  float64 `json:"ratio,omitempty"`
	Allocs float64 `json:"allocs"`
}

func main() { bench.Main("rl", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("rl", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "rl.json"), "file of the JSON result")
	rounds := flags.Int("rounds", 7, "measurements of each side")
	rows := flags.Int("rows", 256, "rows of the batch")
	length := flags.Int("length", 4096, "tokens of a row")
	if err := flags.Parse(args); err != nil {
		return err
	}
	batch := losstest.New[float32](rand.New(rand.NewPCG(1, 2)), *rows, *length, losstest.Spread{Drift: 0.1})
	p, err := startPeer(ctx, batch)
	if err != nil {
		fmt.Println("without PyTorch to compare with:", err)
	}
	defer p.stop()
	results := map[string]row{}
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "loss\tGo tok/s\tPyTorch\tratio\tallocs\t")
	for _, c := range losstest.Cases() {
		r, err := compare(ctx, c, batch, p, *rounds)
		if err != nil {
			return fmt.Errorf("measure %s: %w", c.Name, err)
		}
		results[c.Name] = r
		fmt.Fprintf(w, "%s\t%.3g\t%.3g\t%.2f\t%g\t\n", c.Name, r.Go, r.Torch, r.Ratio, r.Allocs)
	}
	w.Flush()
	scaling, err := scale(ctx, batch, *rounds)
	if err != nil {
		return err
	}
	fmt.Printf("PPO on 2 of %d cores: %.2f times one core's rate\n", runtime.NumCPU(), scaling)
	return bench.Write(*out, results)
}
