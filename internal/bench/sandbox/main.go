// Command sandbox measures the sandbox beside the limit of its design and beside its peers, in the same run, and holds
// the figures against the goals. It runs from the repository's root and uses bin/ropewalk for what goes through the
// service.
//
// Glossary. *The call* is a program that asks numpy for a sum, with numpy and sympy loaded. *The limit* is the same
// program in children forked by warm interpreters with nothing around them (sandbox/bench/limit.py): same interpreter,
// environment and warm-up. A *peer* is another way of running a program; peers run print(1), their best case, and one is
// *isolated* if it keeps the program from the host. A *round* measures all sides in turn, so that whatever else the
// machine does meets each; figures are medians over rounds. *In flight* is how many calls are under way at any time;
// latency is from handing a call over to having its verdict. A *part* is what is measured together. Every verdict is
// checked. What could not be measured has no figure and a line that says why.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
)

// options are the command line.
type options struct {
	out, program, only string
	fusion, judge      string
	round              time.Duration
	rounds             int
	burst              int
	good, loops        int
	short              bool
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
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.StringVar(&o.out, "out", filepath.Join(".ropewalk", "bench", "sandbox.json"), "file of the JSON result")
	flags.StringVar(&o.program, "program", filepath.Join("bin", "ropewalk"), "the command whose service is measured")
	flags.StringVar(&o.only, "only", "", "parts to measure, with commas; default all: "+strings.Join(names(), ","))
	flags.StringVar(&o.fusion, "fusion", "", "address of a SandboxFusion that runs, as http://host:port, to measure as a peer")
	flags.StringVar(&o.judge, "judge", "", "address of a code-judge that runs, as http://host:port, to measure as a peer")
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
	for _, name := range o.chosen() {
		if !slices.Contains(names(), name) {
			return options{}, fmt.Errorf("-only: %q is not one of %s", name, strings.Join(names(), ", "))
		}
	}
	return o, nil
}

// chosen are the parts to measure.
func (o options) chosen() []string {
	if o.only == "" {
		return names()
	}
	return strings.Split(o.only, ",")
}

// closeAfter closes c and keeps the first fault.
func closeAfter(c io.Closer, err *error) {
	if closing := c.Close(); *err == nil {
		*err = closing
	}
}
