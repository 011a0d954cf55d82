// Package soak keeps the sandbox under full load of good, failing and hostile programs and of sessions, and watches
// which resources this process and the interpreters use. It fails if any of these grows, if a verdict is wrong, if a
// call breaks, or if something is left behind. It runs from the repository's root.
//
// A *kind* is a way for a program to end. A *quantity* is a resource in use: memory, descriptors, processes, zombies,
// mounts, bytes on temporary file systems. Its *growth* is the slope of its samples in the second half, when everything
// has long been warm, times the length of that half (bench.Slope, which outliers do not move).
package soak

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// leastFor is how long a soak must last for its second half to be meaningful.
const leastFor = 10 * time.Second

// Case soaks the sandbox.
var Case = bench.Case{Name: "soak", Doc: "the sandbox under load for a long time", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	length := flags.Duration("for", 30*time.Minute, "how long")
	inFlight := flags.Int("in-flight", 16, "calls and sessions under way at any time")
	seed := flags.Uint64("seed", 1, "of the order of programs")
	return func(ctx context.Context, r *bench.Report) error {
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
		r.Note("soaking", "for %s: tier %s, %d workers, %d in flight", *length, executor.Isolation(),
			executor.Workers(), *inFlight)
		err = soak(ctx, executor, sessions, r, *length, *inFlight, *seed)
		if err := errors.Join(err, sessions.Close(), executor.Close()); err != nil {
			return err
		}
		after, err := settle(before)
		for _, line := range left(before, after) {
			r.Add("left behind: "+line, bench.Of("faults", 1).AtMost(0))
		}
		return err
	}
}
