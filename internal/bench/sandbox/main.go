// Command sandbox measures the sandbox together with the limit of its design and with its peers, in the same run, and
// compares the figures with the goals. It runs from the repository's root and uses bin/ropewalk for everything that
// goes through the service.
//
// *The call* is a program that asks numpy for a sum, with numpy and sympy loaded. *The limit* is the same program in
// children forked by warm interpreters, without isolation or transport (sandbox/bench/limit.py), with the same
// interpreter, environment and warm-up. A *peer* is another way of running a program. Peers run print(1), their best
// case; a peer is *isolated* if it keeps the program away from the host. A *round* measures all sides in turn, so that
// other load on the machine affects each of them. Figures are medians over rounds. *In flight* is how many calls run at
// any time. Latency is the time from submitting a call to its verdict. A *part* is a set of figures that are measured
// together. Every verdict is checked. For figures that could not be measured, a line says why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// options are the command line options.
type options struct {
	out, program string
	chosen       []string // names of parts
	fusion       string
	round        time.Duration
	rounds       int
	burst        int
	good, loops  int
	short        bool
}

func main() { bench.Main("sandbox", run) }

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	s, err := openSubject(ctx)
	if err != nil {
		return err
	}
	defer s.executor.Close()
	r := newResult(s)
	b := benchmark{options: o, subject: s, result: r}
	faults := b.measure(ctx)
	if r.Limit != nil {
		r.LimitMean2 = pointer(2 * 1000 / *r.Limit)
	}
	r.Goals = goals(r)
	show(r)
	if err := bench.Write(o.out, r); err != nil {
		return err
	}
	return errors.Join(faults...)
}

func parse(args []string) (options, error) {
	var o options
	var only string
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", filepath.Join(".ropewalk", "bench", "sandbox.json"), "file of the JSON result")
	flags.StringVar(&o.program, "program", filepath.Join("bin", "ropewalk"), "the command whose service is measured")
	flags.StringVar(&only, "only", "", "parts to measure, with commas; default all: "+strings.Join(names(), ","))
	flags.StringVar(&o.fusion, "fusion", "",
		"address of a SandboxFusion that runs, as http://host:port, to measure as a peer")
	flags.DurationVar(&o.round, "round", 3*time.Second, "time that each side has in a round")
	flags.IntVar(&o.rounds, "rounds", 5, "rounds")
	flags.IntVar(&o.burst, "burst", 45000, "calls of the burst")
	flags.IntVar(&o.good, "good", 10000, "good calls that run among endless loops")
	flags.IntVar(&o.loops, "loops", 100, "endless loops among them")
	flags.BoolVar(&o.short, "short", false, "measure everything briefly: to see that it works, not for figures")
	if err := flags.Parse(args); err != nil {
		return options{}, err
	}
	if o.short {
		o.round, o.rounds, o.burst, o.good, o.loops = 500*time.Millisecond, 1, 1000, 200, 2
	}
	if o.round <= 0 || min(o.rounds, o.burst, o.good, o.loops) < 1 {
		return options{}, errors.New("-round, -rounds, -burst, -good and -loops must be positive")
	}
	var err error
	if o.chosen, err = bench.Choose("part", only, names()); err != nil {
		return options{}, fmt.Errorf("-only: %w", err)
	}
	if len(o.chosen) == 0 {
		o.chosen = names()
	}
	return o, nil
}

// closeAfter closes c and keeps the first error.
func closeAfter(c io.Closer, err *error) {
	if closing := c.Close(); *err == nil {
		*err = closing
	}
}
