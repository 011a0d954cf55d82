// Package serve compares `ropewalk serve` with llama.cpp's server, and with vLLM's on the processor where that is
// installed: the same weights in float32, the same number of threads, the same requests.
//
// Glossary. A *stream* is a client that sends one request after the other. The *load* is the number of streams at once.
// *Throughput* is how many tokens all streams receive in a second. The *first token* is the time from a request to the
// first piece of its streamed answer. A *side* is a server, or our engine without one.
package serve

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// Case measures the server.
var Case = bench.Case{Name: "serve", Doc: "ropewalk serve next to llama.cpp's server and vLLM", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	var c contest
	flags.StringVar(&c.binary, "binary", filepath.Join("bin", "ropewalk"), "the program")
	flags.StringVar(&c.llamaPath, "llama", filepath.Join(".tools", "llama-server"), "llama.cpp's server")
	flags.StringVar(&c.vllmPath, "vllm", filepath.Join(".tools", "vllm", "bin", "vllm"),
		"vLLM for the processor; where there is none it is left out")
	model := flags.String("model", filepath.Join(".tools", "models", "smollm2-135m-instruct.gguf"), "the model's GGUF "+
		"file; llama.cpp's server is measured with it, and with its weights in float32")
	flags.IntVar(&c.w.prompt, "prompt", 64, "tokens of each prompt")
	flags.IntVar(&c.w.tokens, "tokens", 64, "new tokens of each answer")
	flags.IntVar(&c.rounds, "rounds", 5, "rounds of each load")
	flags.IntVar(&c.threads, "threads", runtime.NumCPU(), "threads of each side")
	return func(ctx context.Context, r *bench.Report) error {
		for _, file := range []string{c.binary, c.llamaPath, *model} {
			if _, err := os.Stat(file); err != nil {
				return fmt.Errorf("%w (make build, tools/llama-server.sh and make models make what is needed)", err)
			}
		}
		var err error
		if c.m, err = prepare(*model, r.Dir); err != nil {
			return err
		}
		c.w.words = c.m.words
		return c.run(ctx, r)
	}
}

// run measures all sides. vLLM, whose processes are not quite idle between requests, meets our server alone.
func (c contest) run(ctx context.Context, r *bench.Report) error {
	first := c
	defer func() { first.stop(); c.stop() }()
	if err := first.start(ctx); err != nil {
		return err
	}
	if err := first.measure(ctx, r, 0); err != nil {
		return err
	}
	first.stop()
	if _, err := os.Stat(c.vllmPath); err != nil {
		r.Note("vLLM is not measured", "there is no %s (tools/vllm.sh installs it)", c.vllmPath)
		return nil
	}
	if err := errors.Join(c.ropewalk(ctx), c.vllm(ctx)); err != nil {
		return err
	}
	return c.measure(ctx, r, 1) // our server was measured before
}

// start starts all sides but vLLM. Our server is the first side.
func (c *contest) start(ctx context.Context) error {
	return errors.Join(c.ropewalk(ctx), c.llama(ctx, "llama-server, float32", c.m.f32),
		c.llama(ctx, "llama-server, as published", c.m.file), c.engine(ctx))
}

// measure adds the sides under all loads, from the side with this index on.
func (c *contest) measure(ctx context.Context, r *bench.Report, from int) error {
	for _, n := range loads {
		rows, err := compare(ctx, c.sides, n, c.rounds)
		if err != nil {
			return err
		}
		for _, row := range rows[from:] {
			r.Add(row.What, row.Figures...)
		}
	}
	return nil
}

// compare measures all sides under one load. The first side is our server, whose throughput is divided by the others'.
func compare(ctx context.Context, all []side, streams, rounds int) (rows []bench.Row, err error) {
	var sides []bench.Side[measured]
	for _, s := range all {
		sides = append(sides, bench.Side[measured]{Name: s.name, Measure: func(ctx context.Context) (measured, error) {
			return s.measure(ctx, streams)
		}})
	}
	if _, err := bench.TakeTurns(ctx, bench.Rounds(1), sides...); err != nil { // warms up
		return nil, err
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), sides...)
	if err != nil {
		return nil, err
	}
	rate := func(m measured) float64 { return m.rate }
	ours := bench.Column(found[0], rate)
	for i, s := range sides {
		theirs := bench.Column(found[i], rate)
		row := bench.Row{What: fmt.Sprintf("%d streams, %s", streams, s.Name), Figures: []bench.Figure{
			bench.Of("tokens/s", bench.Median(theirs)), bench.Of("ours ÷ it", bench.Ratio(ours, theirs))}}
		var first []float64
		for _, m := range found[i] {
			first = append(first, m.first...)
		}
		if len(first) > 0 {
			slices.Sort(first)
			row.Figures = append(row.Figures, bench.Of("first token p50 ms", 1000*bench.Quantile(first, 0.5)),
				bench.Of("p99 ms", 1000*bench.Quantile(first, 0.99)))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// engine adds our engine, in this process.
func (c *contest) engine(ctx context.Context) error {
	e, err := openEngine(ctx, c.threads, c.m.folder)
	if err != nil {
		return err
	}
	c.stops = append(c.stops, func() { _ = e.Close() }) // nothing is written
	c.sides = append(c.sides, c.w.direct(e))
	return nil
}
