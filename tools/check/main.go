// Command check builds and runs the tests of the module in whose root it is started, and tells where the time went.
//
//	check [flags] [PACKAGE ...]
//
// It works in two phases: first it compiles and links all test binaries with nothing else running, then it runs
// them, those that took longest the last time first. Tests therefore never share the processors with compilers.
//
// # Which packages
//
// PACKAGE is a pattern as go list has it; without one, all packages are tested. With -since, only those are that the
// changes since a commit reach: a package whose files changed, and every package that imports it, directly or not. With
// -passed, those are left out that passed before with the same files. The nearest come first, and those that no longer
// fit into -budget are named and not run.
//
// # Output
//
// A line per package as it ends, then the output of tests that failed, the slowest tests and packages, and a closing
// line "N passed, N failed, N skipped" that counts top-level tests. A failed test is never tried again.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"time"
)

// Options are the command's flags.
type Options struct {
	Since  string        // a commit; "" tests all of Patterns
	Passed string        // a file that notes with which files packages passed; these are left out
	All    bool          // with Passed: leave out none
	Budget time.Duration // with Since or Passed: the packages' measured times may add up to this; 0 is no limit
	Race   bool          // build with the race detector
	Skip   string        // go test's -skip
	Jobs   int           // packages that run at the same time
	Limit  time.Duration // of one package: only what hangs reaches it
	Times  string        // the file with each package's seconds, read and rewritten; "" is none
	Update bool          // write Times
	Slow   int           // how many tests and packages the tables of the slowest hold
	List   bool          // only print the packages that would run
	Except string        // packages that are not tested, by pattern

	Patterns []string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// gogc is GOGC of compilers, linkers and tests where the environment has none: there is more memory than time.
const gogc = "300"

func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if _, set := os.LookupEnv("GOGC"); !set {
		if err := os.Setenv("GOGC", gogc); err != nil {
			return err
		}
	}
	times, err := readTimes(o.Times)
	if err != nil {
		return err
	}
	packages, err := choose(ctx, o, times, out)
	if err != nil {
		return err
	}
	var now map[string]inputs
	if o.Passed != "" {
		if packages, now, err = changedSince(ctx, o, times, packages, out); err != nil {
			return err
		}
	}
	if o.List {
		if o.Since == "" && o.Passed == "" { // which print their reasons, too
			for _, p := range packages {
				fmt.Fprintln(out, p.ImportPath)
			}
		}
		return nil
	}
	if len(packages) == 0 {
		fmt.Fprintln(out, "no test to run")
		return nil
	}
	folder, err := os.MkdirTemp("", "ropewalk-check-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	began := time.Now()
	binaries, err := build(ctx, o, packages, folder)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "built the tests of %d packages in %.0f s\n", len(binaries), time.Since(began).Seconds())
	began = time.Now()
	results := runAll(ctx, o, binaries, times, out)
	failed := report(o, results, time.Since(began), out)
	if o.Passed != "" {
		passed, err := readPassed(o.Passed)
		if err == nil {
			err = writePassed(o.Passed, passed, now, results)
		}
		failed = errors.Join(failed, err)
	}
	if o.Update {
		failed = errors.Join(failed, writeTimes(o.Times, times, results))
	}
	return failed
}

func parse(args []string) (o Options, err error) {
	f := flag.NewFlagSet("check", flag.ContinueOnError)
	f.StringVar(&o.Since, "since", "", "test only what the changes since this commit reach")
	f.StringVar(&o.Passed, "passed", "", "a file that notes with which files packages passed, which are then left out")
	f.BoolVar(&o.All, "all", false, "with -passed: test all packages, and note those that pass")
	f.DurationVar(&o.Budget, "budget", 0,
		"with -since or -passed: leave out packages whose measured times do not fit (0: none)")
	f.BoolVar(&o.Race, "race", false, "use the race detector")
	f.StringVar(&o.Skip, "skip", "", "skip tests that match, as go test does")
	f.IntVar(&o.Jobs, "jobs", runtime.NumCPU()+3, "packages that run at the same time")
	f.DurationVar(&o.Limit, "limit", 45*time.Minute, "end a package that takes longer: it hangs")
	f.StringVar(&o.Times, "times", "", "a file with the seconds that each package takes")
	f.BoolVar(&o.Update, "update", false, "write the file of -times")
	f.IntVar(&o.Slow, "slow", 20, "how many of the slowest tests and packages to print")
	f.BoolVar(&o.List, "list", false, "print the packages, and run nothing")
	f.StringVar(&o.Except, "except", "", "leave out the packages that match this pattern of go list")
	if err := f.Parse(args); err != nil {
		return o, err
	}
	if o.Patterns = f.Args(); len(o.Patterns) == 0 {
		o.Patterns = []string{"./..."}
	}
	if o.Update && o.Times == "" {
		return o, fmt.Errorf("-update needs -times")
	}
	if o.Jobs < 1 {
		return o, fmt.Errorf("-jobs is %d and must be at least 1", o.Jobs)
	}
	return o, nil
}
