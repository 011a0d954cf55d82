// Command fleet measures what the rollout scheduler makes of servers that fail. It starts three servers of one kind,
// each a process with one thread, and generates the same episodes in two ways: all servers behind one sampler, whose
// scheduler decides which server is asked for which turn, and a *static split*, in which every server has a third of
// the episodes. In mid-rollout one server is killed, and another one is slowed to a tenth: it is stopped for nine of
// ten moments. The static split gives what the killed server has not finished to the other two at once, in equal
// parts.
//
// An *episode* is a few turns with the results of tools between them. The *makespan* is the time until the last episode
// has ended.
package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"runtime"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
)

func main() { bench.Main("fleet", run) }

// measured is one round of one kind of server.
type measured struct {
	Kind      string  `json:"kind"`
	Scheduler outcome `json:"scheduler"`
	Static    outcome `json:"static"`
	// Undisturbed is the scheduler's outcome without a kill and without a slow server.
	Undisturbed outcome `json:"undisturbed"`
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("fleet", flag.ContinueOnError)
	out := flags.String("out", ".ropewalk/bench/fleet.json", "file for the JSON object")
	binary := flags.String("binary", "bin/ropewalk", "the program")
	llama := flags.String("llama", "", "llama-server; empty leaves it out")
	episodes := flags.Int("episodes", 120, "episodes of a rollout")
	rounds := flags.Int("rounds", 3, "rollouts of each way")
	if err := flags.Parse(args); err != nil {
		return err
	}
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
	var all []measured
	for _, k := range kinds {
		for range *rounds {
			one := measured{Kind: k.kind}
			for _, way := range []struct {
				into          *outcome
				static, fault bool
			}{{&one.Undisturbed, false, false}, {&one.Scheduler, false, true}, {&one.Static, true, true}} {
				if *way.into, err = rollOut(ctx, k, m, work, way.static, way.fault); err != nil {
					return fmt.Errorf("%s: %w", k.kind, err)
				}
			}
			all = append(all, one)
			fmt.Fprintf(os.Stderr, "%s: %.1f s undisturbed, %.1f s by the scheduler, %.1f s by a static split\n",
				k.kind, one.Undisturbed.Seconds, one.Scheduler.Seconds, one.Static.Seconds)
		}
	}
	fmt.Print(table(all))
	return bench.Write(*out, map[string]any{"rounds": all, "cores": runtime.NumCPU(), "episodes": *episodes})
}

func table(all []measured) string {
	var b bytes.Buffer
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "servers\tundisturbed\tscheduler\tstatic split\tstatic / scheduler\tmoved\trepeated\tequal")
	for _, m := range all {
		fmt.Fprintf(w, "%s\t%.1f s\t%.1f s\t%.1f s\t%.2f\t%d\t%d\t%s\n", m.Kind, m.Undisturbed.Seconds,
			m.Scheduler.Seconds, m.Static.Seconds, m.Static.Seconds/m.Scheduler.Seconds, m.Scheduler.Stats.Moved,
			m.Scheduler.Stats.Repeated, m.equal())
	}
	w.Flush()
	return b.String()
}

// equal says whether all ways have given the same tokens and log-probabilities. Servers whose draws depend on what else
// they generate need not.
func (m measured) equal() string {
	switch {
	case !m.Undisturbed.Seeds:
		return "-"
	case m.Undisturbed.Digest == m.Scheduler.Digest && m.Undisturbed.Digest == m.Static.Digest:
		return "yes"
	}
	return "no"
}
