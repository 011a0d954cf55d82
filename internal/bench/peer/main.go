// Package peer compares training steps of a published model in the program and in TRL's GRPOTrainer: the same weights,
// prompts, rows, lengths, reward, loss and optimiser, in float32 with as many threads.
//
// Glossary. A *step* begins when the one before has ended: in the program with its policy's publication. The first step
// of each run is left out. *Sampling*, *reward* and *update* are its stages, and *rest* is all other time. A
// *micro-batch* is the rows of one forward and backward pass of TRL, which is measured with the size that is fastest.
package peer

import (
	"context"
	"errors"
	"flag"
	"os"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
)

// goal is the least ratio of TRL's time of a step to ours.
const goal = 3

// Case measures training steps.
var Case = bench.Case{Name: "peer", Doc: "training steps next to TRL's GRPOTrainer", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	binary := flags.String("binary", filepath.Join("bin", "ropewalk"), "the program")
	model := flags.String("model", filepath.Join(".tools", "models", "smollm2-135m-instruct.gguf"),
		"the file of the recipe's model")
	steps := flags.Int("steps", 3, "measured steps of each run, which has one more before them")
	rounds := flags.Int("rounds", 2, "runs of each side")
	return func(ctx context.Context, r *bench.Report) (err error) {
		if *steps < 1 || *rounds < 1 {
			return errors.New("at least 1 step and 1 round")
		}
		c := contest{program: bench.Program{Path: *binary, Progress: os.Stderr}, steps: *steps, report: r}
		if c.interpreter, err = python.Find(ctx, "torch", "transformers", "trl"); err != nil {
			return err
		}
		if err := c.read(); err != nil {
			return err
		}
		c.model = filepath.Join(r.Dir, "model")
		if err := c.program.Run(ctx, nil, "export", *model, "--dtype", "f32", "-o", c.model); err != nil {
			return err
		}
		found, err := bench.TakeTurns(ctx, bench.Rounds(*rounds), bench.Side[[]step]{Name: "Ropewalk", Measure: c.ours},
			bench.Side[[]step]{Name: "TRL", Measure: c.theirs})
		if err != nil {
			return err
		}
		report(r, found[0], found[1])
		return nil
	}
}

// step is what one step took, in seconds, and how many tokens it sampled.
type step struct{ Seconds, Sampling, Reward, Update, Tokens float64 }

// report adds both sides and the ratio of their medians.
func report(r *bench.Report, ours, theirs [][]step) {
	a, b := figures(ours), figures(theirs)
	r.Add("Ropewalk", a...)
	r.Add("TRL", b...)
	r.Add("TRL ÷ Ropewalk", bench.Of("ratio of s a step", b[0].Value/a[0].Value).AtLeast(goal))
}

// figures are the median of the steps of a side's runs, and the rate and the shares of all of them together.
func figures(runs [][]step) []bench.Figure {
	var seconds []float64
	var all step
	for _, run := range runs {
		for _, s := range run {
			seconds = append(seconds, s.Seconds)
			all = step{all.Seconds + s.Seconds, all.Sampling + s.Sampling, all.Reward + s.Reward, all.Update + s.Update,
				all.Tokens + s.Tokens}
		}
	}
	share := func(stage string, of float64) bench.Figure { return bench.Of(stage+" %", 100*of/all.Seconds) }
	return []bench.Figure{bench.Of("s a step", bench.Median(seconds)), bench.Of("tokens/s", all.Tokens/all.Seconds),
		share("sampling", all.Sampling), share("reward", all.Reward), share("update", all.Update),
		share("rest", all.Seconds-all.Sampling-all.Reward-all.Update)}
}
