// Command soak keeps the sandbox under full load of good, failing and hostile programs and of sessions, and watches
// which resources this process and the interpreters use. It fails if any of these grows, if a verdict is wrong, if a
// call breaks, or if something is left behind. It runs from the repository's root.
//
// A *kind* is a way for a program to end. A *quantity* is a resource in use: memory, descriptors, processes, zombies,
// mounts, bytes on temporary file systems. Its *growth* is the slope of its samples in the second half, when everything
// has long been warm, times the length of that half (bench.Slope, which outliers do not move).
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// leastFor is how long a soak must last for its second half to be meaningful.
const leastFor = 10 * time.Second

// result is the JSON object.
type result struct {
	Tier      string                    `json:"tier"`
	Seconds   float64                   `json:"seconds"`
	Calls     int64                     `json:"calls"`
	CallsPerS float64                   `json:"calls_per_s"`
	Verdicts  map[string]map[string]int `json:"verdicts"` // kind → status → count
	Wrong     []string                  `json:"wrong,omitempty"`
	Broken    []string                  `json:"broken,omitempty"`
	Growth    []growth                  `json:"growth"`
	Left      []string                  `json:"left_behind,omitempty"` // after the executor was closed
	Samples   int                       `json:"samples"`
}

func main() { bench.Main("soak", run) }

func run(ctx context.Context, args []string) (err error) {
	flags := flag.NewFlagSet("soak", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "soak.json"), "file of the JSON result")
	length := flags.Duration("for", 30*time.Minute, "how long")
	inFlight := flags.Int("in-flight", 16, "calls and sessions under way at any time")
	seed := flags.Uint64("seed", 1, "of the order of programs")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if *length < leastFor || *inFlight < 1 {
		return fmt.Errorf("-for must be %s at least, -in-flight 1", leastFor)
	}
	// Processes that outlive their parent become this process's children, so that it can see them.
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become the parent of orphans: %w", err)
	}
	before, err := bench.Tree(os.Getpid())
	if err != nil {
		return err
	}
	executor, err := zygote.Open(zygote.Options{Python: bench.SandboxPython()})
	if err != nil {
		return err
	}
	sessions, err := zygote.OpenSessions(zygote.Options{Python: bench.SandboxPython()})
	if err != nil {
		return errors.Join(err, executor.Close())
	}
	fmt.Printf("soaking for %s: tier %s, %d workers, %d in flight\n", *length, executor.Isolation(), executor.Workers(),
		*inFlight)
	r := &result{Tier: executor.Isolation()}
	err = soak(ctx, executor, sessions, r, *length, *inFlight, *seed)
	if err := errors.Join(err, sessions.Close(), executor.Close()); err != nil {
		return err
	}
	after, err := settle(before)
	if err != nil {
		return err
	}
	r.Left = left(before, after)
	if err := bench.Write(*out, r); err != nil {
		return err
	}
	return r.judge()
}

// judge prints the result and returns an error if anything is wrong.
func (r *result) judge() error {
	var faults []error
	for _, g := range r.Growth {
		word := "steady"
		if g.grows() {
			word = "GROWS"
			faults = append(faults, fmt.Errorf("%s grew by %.1f over the second half, more than %.1f", g.What, g.By,
				g.Bound))
		}
		fmt.Printf("%-28s %12.1f in the middle, growth %+10.1f, bound %8.1f: %s\n", g.What, g.Middle, g.By, g.Bound,
			word)
	}
	for what, all := range map[string][]string{"wrong": r.Wrong, "broken": r.Broken, "left behind": r.Left} {
		for _, line := range all {
			faults = append(faults, fmt.Errorf("%s: %s", what, line))
		}
	}
	fmt.Printf("%d calls, %.0f a second; %d samples\n", r.Calls, r.CallsPerS, r.Samples)
	return errors.Join(faults...)
}
