// Command serve compares `ropewalk serve` with llama.cpp's server, and with vLLM's on the processor where that is
// installed: the same weights in float32, the same number of threads, the same requests.
//
// Glossary. A *stream* is a client that sends one request after the other. The *load* is the number of streams at once.
// *Throughput* is how many tokens all streams receive in a second. The *first token* is the time from a request to the
// first piece of its streamed answer. A *side* is a server, or our engine without one. *Reading* is how fast the
// threads read memory from its beginning to its end. It bounds a single stream: each of its tokens takes all weights.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/machine"
	"github.com/ropewalk/ropewalk/policy"
)

// outcome is the result.
type outcome struct {
	Model   string          `json:"model"`
	Params  int64           `json:"params"`
	Machine machine.Machine `json:"machine"`
	Prompt  int             `json:"prompt_tokens"`
	Tokens  int             `json:"new_tokens"`
	Reading float64         `json:"reading_gb_per_s"` // the median of the rounds
	Rows    []row           `json:"rows"`
}

// row is one side under one load.
type row struct {
	Side       string  `json:"side"`
	Streams    int     `json:"streams"`
	Rounds     int     `json:"rounds"`
	Throughput float64 `json:"tokens_per_s"` // the median of the rounds
	// Ratio is our throughput divided by this side's, the median of the rounds; 0 for our own server.
	Ratio float64 `json:"ratio,omitempty"`
	// Weights is how fast the side reads its weights with one stream, if they are in float32.
	Weights  float64 `json:"weights_gb_per_s,omitempty"`
	FirstP50 float64 `json:"first_token_p50_ms,omitempty"`
	FirstP99 float64 `json:"first_token_p99_ms,omitempty"`
}

func main() { bench.Main("serve", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "serve.json"), "file of the JSON result")
	binary := flags.String("binary", filepath.Join("bin", "ropewalk"), "the program")
	llama := flags.String("llama", filepath.Join(".tools", "llama-server"), "llama.cpp's server")
	vllm := flags.String("vllm", filepath.Join(".tools", "vllm", "bin", "vllm"), "vLLM for the processor; where there "+
		"is none it is left out")
	model := flags.String("model", filepath.Join(".tools", "models", "smollm2-135m-instruct.gguf"), "the model's GGUF "+
		"file; llama.cpp's server is measured with it, and with its weights in float32")
	loads := flags.String("streams", "1,4,16", "numbers of streams")
	prompt := flags.Int("prompt", 64, "tokens of each prompt")
	tokens := flags.Int("tokens", 64, "new tokens of each answer")
	rounds := flags.Int("rounds", 5, "rounds of each load")
	threads := flags.Int("threads", runtime.NumCPU(), "threads of each side")
	if err := flags.Parse(args); err != nil {
		return err
	}
	streams, err := numbers(*loads)
	if err != nil {
		return err
	}
	for _, file := range []string{*binary, *llama, *model} {
		if _, err := os.Stat(file); err != nil {
			return fmt.Errorf("%w (make build, tools/llama-server.sh and make models make what is needed)", err)
		}
	}
	dir, err := os.MkdirTemp("", "ropewalk-bench-serve-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	m, err := prepare(*model, dir)
	if err != nil {
		return err
	}
	first := contest{m: m, w: load{words: m.words, prompt: *prompt, tokens: *tokens}, threads: *threads,
		at: places{binary: *binary, llama: *llama, vllm: *vllm}, streams: slices.Max(streams)}
	second := first
	defer func() { first.stop(); second.stop() }()
	o := outcome{Model: filepath.Base(*model), Params: m.params, Prompt: *prompt, Tokens: *tokens,
		Reading: reading(*threads, *rounds)}
	engine, err := first.start(ctx)
	if err != nil {
		return err
	}
	o.Machine = machine.Of(engine.Describe())
	fmt.Printf("%s, %d threads: %s, prompts of %d tokens, answers of %d; they read %.1f GB/s\n", o.Machine.CPU,
		*threads, o.Model, *prompt, *tokens, o.Reading)
	if err := o.measure(ctx, first.sides, streams, *rounds); err != nil {
		return err
	}
	first.stop()
	if _, err := os.Stat(*vllm); err != nil {
		fmt.Printf("vLLM is not measured: there is no %s (tools/vllm.sh installs it)\n", *vllm)
	} else {
		if err := errors.Join(second.ropewalk(ctx), second.vllm(ctx)); err != nil {
			return err
		}
		var next outcome
		if err := next.measure(ctx, second.sides, streams, *rounds); err != nil {
			return err
		}
		for _, r := range next.Rows {
			if r.Side != second.sides[0].name { // measured before
				o.Rows = append(o.Rows, r)
			}
		}
	}
	for i, r := range o.Rows {
		if r.Streams == 1 && !strings.Contains(r.Side, published) {
			o.Rows[i].Weights = r.Throughput * float64(4*m.params) / 1e9
		}
	}
	slices.SortStableFunc(o.Rows, func(a, b row) int { return cmp.Compare(a.Streams, b.Streams) })
	print(o.Rows)
	return bench.Write(*out, o)
}

// measure adds the rows of some sides under all loads. The first side is our server.
func (o *outcome) measure(ctx context.Context, sides []side, streams []int, rounds int) error {
	for _, n := range streams {
		rows, err := compare(ctx, sides, n, rounds)
		if err != nil {
			return err
		}
		o.Rows = append(o.Rows, rows...)
		fmt.Printf("%d streams measured\n", n)
	}
	return nil
}

// published marks the side whose weights are as they were published.
const published = "as published"

// start starts all sides but vLLM, whose processes are not quite idle between requests and which therefore meets our
// server alone. Our server is the first side.
func (c *contest) start(ctx context.Context) (policy.Engine, error) {
	err := errors.Join(c.ropewalk(ctx), c.llama(ctx, "llama-server, float32", c.m.f32),
		c.llama(ctx, "llama-server, "+published, c.m.file))
	if err != nil {
		return nil, err
	}
	return c.engine(ctx)
}

// numbers reads a list of numbers, separated by commas.
func numbers(text string) ([]int, error) {
	var out []int
	for _, field := range strings.Split(text, ",") {
		n, err := strconv.Atoi(field)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("-streams: %q is not a positive number", field)
		}
		out = append(out, n)
	}
	return out, nil
}

// compare measures all sides under one load. The first side is our server.
func compare(ctx context.Context, all []side, streams, rounds int) ([]row, error) {
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
	var rows []row
	for i, s := range sides {
		r := row{Side: s.Name, Streams: streams, Rounds: rounds, Throughput: bench.Median(bench.Column(found[i], rate))}
		if i > 0 {
			r.Ratio = bench.Ratio(ours, bench.Column(found[i], rate))
		}
		var first []float64
		for _, m := range found[i] {
			first = append(first, m.first...)
		}
		if len(first) > 0 {
			slices.Sort(first)
			r.FirstP50, r.FirstP99 = 1000*bench.Quantile(first, 0.5), 1000*bench.Quantile(first, 0.99)
		}
		rows = append(rows, r)
	}
	return rows, nil
}

func print(rows []row) {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "streams\tside\ttokens/s\tours ÷ it\tweights GB/s\tfirst token p50 ms\tp99 ms\t")
	for _, r := range rows {
		fmt.Fprintf(w, "%d\t%s\t%.1f\t%s\t%s\t%s\t%s\t\n", r.Streams, r.Side, r.Throughput, figure(r.Ratio, 2),
			figure(r.Weights, 1), figure(r.FirstP50, 0), figure(r.FirstP99, 0))
	}
	w.Flush()
}

// figure is a number, or nothing for one that was not measured.
func figure(x float64, digits int) string {
	if x == 0 {
		return ""
	}
	return strconv.FormatFloat(x, 'f', digits, 64)
}
