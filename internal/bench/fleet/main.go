// Package fleet measures what the rollout scheduler makes of servers that fail. It starts three servers of one kind,
// each a process with one thread, and generates the same episodes in two ways: all servers behind one sampler, whose
// scheduler decides which server is asked for which turn, and a *static split*, in which every server has a third of
// the episodes. In mid-rollout one server is killed, and another one is slowed to a tenth: it is stopped for nine of
// ten moments. The static split gives what the killed server has not finished to the other two at once, in equal parts.
//
// An *episode* is a few turns with the results of tools between them. The *makespan* is the time until the last episode
// has ended.
package fleet

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// Case measures the scheduler.
var Case = bench.Case{Name: "fleet", Doc: "inference servers of which one is killed and one is slow", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	binary := flags.String("binary", "bin/ropewalk", "the program")
	llama := flags.String("llama", "", "llama-server; empty leaves it out")
	episodes := flags.Int("episodes", 120, "episodes of a rollout")
	rounds := flags.Int("rounds", 3, "rollouts of each way")
	return func(ctx context.Context, r *bench.Report) error {
		if *episodes < 3 || *rounds < 1 {
			return errors.New("at least 3 episodes and 1 round")
		}
		dir, err := os.MkdirTemp("", "ropewalk-fleet-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(dir)
		m, err := writeModel(dir, benchShape)
		if err != nil {
			return err
		}
		kinds := []program{ropewalkServe(*binary)}
		if *llama != "" {
			kinds = append(kinds, llamaServer(*llama))
		}
		work := workload(*episodes, benchShape.Vocab)
		for _, k := range kinds {
			for range *rounds {
				if err := compare(ctx, r, k, m, work); err != nil {
					return fmt.Errorf("%s: %w", k.kind, err)
				}
			}
		}
		return nil
	}
}

// compare makes one rollout in each way: undisturbed, by the scheduler, and by a static split.
func compare(ctx context.Context, r *bench.Report, k program, m model, work []episode) error {
	var ways [3]outcome
	for i := range ways {
		var err error
		if ways[i], err = rollOut(ctx, k, m, work, i == 2, i > 0); err != nil {
			return err
		}
	}
	figures := []bench.Figure{bench.Of("undisturbed s", ways[0].Seconds), bench.Of("scheduler s", ways[1].Seconds),
		bench.Of("static split s", ways[2].Seconds), bench.Of("static ÷ scheduler", ways[2].Seconds/ways[1].Seconds),
		bench.Of("moved", float64(ways[1].Stats.Moved)), bench.Of("repeated", float64(ways[1].Stats.Repeated))}
	if ways[0].Seeds { // else the draws depend on what else a server generates
		equal := 0.0
		if ways[0].Digest == ways[1].Digest && ways[0].Digest == ways[2].Digest {
			equal = 1
		}
		figures = append(figures, bench.Of("equal tokens", equal).AtLeast(1))
	}
	r.Add(k.kind, figures...)
	return nil
}
