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
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/internal/testing/launch"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
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
		m, err := writeModel(r.Dir, benchShape)
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

// benchShape is a model of 3 million parameters, whose generation takes much longer than requests do.
var benchShape = checkpoint.Shape{Architecture: checkpoint.Llama, Hidden: 256, Layers: 4, Heads: 4, KVHeads: 2,
	HeadDim: 64, FFN: 640, Vocab: 256, Positions: 1024, RopeTheta: 10000, NormEps: 1e-5, Pad: -1}

// model is one model in two forms.
type model struct{ folder, gguf string }

// writeModel writes a model that has learnt nothing.
func writeModel(dir string, shape checkpoint.Shape) (model, error) {
	m := model{folder: filepath.Join(dir, "policy"), gguf: filepath.Join(dir, "policy.gguf")}
	tokens, err := tokenizer.New(nil)
	if err != nil {
		return m, err
	}
	shape.Vocab = tokens.VocabSize()
	if err := checkpoint.Init(m.folder, shape, 1, tokens.Files()); err != nil {
		return m, err
	}
	c, err := checkpoint.Open(m.folder, false)
	if err != nil {
		return m, err
	}
	return m, errors.Join(work.WriteGGUF(m.gguf, "policy", c), c.Close())
}

// atOnce is how many responses a server generates at once.
const atOnce = 4

// program is a kind of server.
type program struct {
	kind    string
	command func(m model, port string) []string
}

func ropewalkServe(binary string) program {
	return program{kind: servers.KindRopewalk, command: func(m model, port string) []string {
		return []string{binary, "serve", m.folder, "--listen", "127.0.0.1:" + port, "--threads", "1", "--rows",
			strconv.Itoa(atOnce), "--name", "policy"}
	}}
}

func llamaServer(binary string) program {
	return program{kind: servers.KindLlama, command: func(m model, port string) []string {
		return []string{binary, "-m", m.gguf, "--alias", "policy", "--host", "127.0.0.1", "--port", port, "--threads",
			"1", "--parallel", strconv.Itoa(atOnce), "--ctx-size", strconv.Itoa(atOnce * benchShape.Positions),
			"--no-warmup", "--cache-type-k", "f32", "--cache-type-v", "f32", "-fa", "off", "--log-disable"}
	}}
}

// start starts a server and waits until it answers.
func (p program) start(ctx context.Context, m model) (*launch.Server, error) {
	return launch.StartReady(ctx, p.kind, "/health", nil, func(port string) []string { return p.command(m, port) })
}

// moment is the length of one of the ten moments of which a slow server works in one.
const moment = 10 * time.Millisecond

// slow slows the server to a tenth until ctx ends.
func slow(ctx context.Context, s *launch.Server) {
	for ctx.Err() == nil {
		s.Signal(syscall.SIGSTOP)
		time.Sleep(9 * moment)
		s.Signal(syscall.SIGCONT)
		time.Sleep(moment)
	}
}
