// Command sandbox measures how fast the sandbox runs the smallest useful program, and beside it, in the same run, a
// fresh interpreter for each call, without any isolation.
//
// Glossary. A *system* is a way of running a call. *In flight* is how many calls are under way at any time. Latency
// is from handing a call over to having its result. Every result is checked.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"text/tabwriter"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

const (
	program = "print(1+2)"
	output  = "3\n"
)

// row is one system's speed at one number of calls in flight.
type row struct {
	System         string  `json:"system"`
	InFlight       int     `json:"in_flight"`
	Calls          int     `json:"calls"`
	CallsPerSecond float64 `json:"calls_per_second"`
	P50Ms          float64 `json:"p50_ms"`
	P99Ms          float64 `json:"p99_ms"`
}

type result struct {
	CallsPerSecond float64 `json:"calls_per_second"` // of the sandbox, with one call a core in flight
	P50Ms          float64 `json:"p50_ms"`
	P99Ms          float64 `json:"p99_ms"`
	PeerRatio      float64 `json:"peer_ratio"` // calls per second over those of fresh interpreters
	Isolation      string  `json:"isolation"`
	Python         string  `json:"python"`
	PythonVersion  string  `json:"python_version"`
	Cores          int     `json:"cores"`
	Rows           []row   `json:"rows"`
}

func main() { bench.Main("sandbox", run) }

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	out := flags.String("out", filepath.Join(".ropewalk", "bench", "sandbox.json"), "file of the JSON result")
	least := flags.Duration("least", 4*time.Second, "least time of each measurement")
	workers := flags.Int("workers", 0, "calls that the sandbox runs at once; 0 means one a core")
	if err := flags.Parse(args); err != nil {
		return err
	}
	executor, err := zygote.Open(zygote.Options{Workers: *workers})
	if err != nil {
		return err
	}
	defer executor.Close()
	python, version := executor.Python()
	res := result{Isolation: executor.Isolation(), Python: python, PythonVersion: version, Cores: runtime.NumCPU()}
	for _, s := range []struct {
		name     string
		inFlight int
		call     caller
	}{
		{"zygote", executor.Workers(), sandboxed(executor)},
		{"zygote", 64, sandboxed(executor)},
		{"fresh " + filepath.Base(python) + " -I -c", executor.Workers(), fresh(python)},
	} {
		r, err := measure(ctx, s.call, s.inFlight, *least)
		if err != nil {
			return fmt.Errorf("measure %s, %d in flight: %w", s.name, s.inFlight, err)
		}
		r.System = s.name
		res.Rows = append(res.Rows, r)
	}
	first, peer := res.Rows[0], res.Rows[2]
	res.CallsPerSecond, res.P50Ms, res.P99Ms = first.CallsPerSecond, first.P50Ms, first.P99Ms
	res.PeerRatio = first.CallsPerSecond / peer.CallsPerSecond
	show(res)
	return bench.Write(*out, res)
}

// caller runs the program once and fails unless it printed what it must.
type caller func(context.Context) error

func sandboxed(executor sandbox.Executor) caller {
	return func(ctx context.Context) error {
		results, err := executor.Run(ctx, []sandbox.Call{{Code: program}})
		if err == nil && results[0].Stdout != output {
			err = fmt.Errorf("run %s: got %s, %q", program, results[0].Status, results[0].Stdout)
		}
		return err
	}
}

func fresh(python string) caller {
	return func(ctx context.Context) error {
		got, err := exec.CommandContext(ctx, python, "-I", "-c", program).Output()
		if err == nil && string(got) != output {
			err = fmt.Errorf("run %s: got %q", program, got)
		}
		return err
	}
}

func show(res result) {
	fmt.Printf("sandbox: %s, Python %s, %d cores\n", res.Isolation, res.PythonVersion, res.Cores)
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "system\tin flight\tcalls\tcalls/s\tp50 ms\tp99 ms\t")
	for _, r := range res.Rows {
		fmt.Fprintf(w, "%s\t%d\t%d\t%.0f\t%.2f\t%.2f\t\n", r.System, r.InFlight, r.Calls, r.CallsPerSecond, r.P50Ms, r.P99Ms)
	}
	w.Flush()
	fmt.Printf("%.1f times as fast as a fresh interpreter\n", res.PeerRatio)
}
