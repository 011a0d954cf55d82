package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// A Result is what a package's tests did.
type Result struct {
	Package
	Seconds, CPU float64 // wall time; the processors' time, that of ended children included
	Tests        []Test
	Output       string // all of it if the package failed
	Err          error  // the binary's exit, or what kept it from running
}

// A Test is a test that ended, a subtest's name containing a slash.
type Test struct {
	Package, Name, Action string // Action is pass, fail or skip
	Seconds               float64
}

// event is a line of test2json.
type event struct {
	Action, Test, Output string
	Elapsed              float64
}

// runAll runs the binaries, those that took longest the last time first, and returns their results in that order.
func runAll(ctx context.Context, o Options, binaries []Binary, times map[string]float64, out io.Writer) []Result {
	slices.SortStableFunc(binaries, func(a, b Binary) int {
		return int(1000 * (times[b.ImportPath] - times[a.ImportPath]))
	})
	results := make([]Result, len(binaries))
	var (
		wait    sync.WaitGroup
		printed sync.Mutex
		places  = make(chan struct{}, o.Jobs)
	)
	for i, b := range binaries {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			results[i] = runOne(ctx, o, b)
			printed.Lock()
			defer printed.Unlock()
			fmt.Fprintln(out, line(results[i]))
		})
	}
	wait.Wait()
	return results
}

// line is what a package's end prints.
func line(r Result) string {
	state := "ok  "
	if r.Err != nil {
		state = "FAIL"
	}
	return fmt.Sprintf("%s\t%s\t%.1fs (processors %.1fs)", state, r.ImportPath, r.Seconds, r.CPU)
}

func runOne(ctx context.Context, o Options, b Binary) Result {
	r := Result{Package: b.Package}
	args := []string{"-test.v=test2json", "-test.paniconexit0", fmt.Sprintf("-test.timeout=%v", o.Limit)}
	if o.Skip != "" {
		args = append(args, "-test.skip", o.Skip)
	}
	var text bytes.Buffer
	cmd := exec.CommandContext(ctx, b.Path, args...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = b.Dir, &text, &text
	cmd.Env = append(os.Environ(), "PWD="+b.Dir)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // what a test leaves behind ends with it
	cmd.WaitDelay = 30 * time.Second                      // for others that hold its output
	began := time.Now()
	r.Err = cmd.Run()
	r.Seconds = time.Since(began).Seconds()
	if s := cmd.ProcessState; s != nil {
		r.CPU = (s.UserTime() + s.SystemTime()).Seconds()
		if err := syscall.Kill(-s.Pid(), syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
			r.Err = errors.Join(r.Err, err)
		}
	}
	if err := r.read(text.Bytes()); err != nil {
		r.Err = errors.Join(r.Err, err)
	}
	return r
}

// read takes the tests and, if the package failed, the output from what its binary printed.
func (r *Result) read(text []byte) error {
	cmd := exec.Command("go", "tool", "test2json", "-t")
	cmd.Stdin = bytes.NewReader(text)
	events, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("run test2json: %w", err)
	}
	outputs := map[string]*strings.Builder{}
	failed := []string{""}
	scan := bufio.NewScanner(bytes.NewReader(events))
	scan.Buffer(nil, 64<<20)
	for scan.Scan() {
		var e event
		if err := json.Unmarshal(scan.Bytes(), &e); err != nil {
			return fmt.Errorf("read the answer of test2json: %w", err)
		}
		switch e.Action {
		case "output":
			if outputs[e.Test] == nil {
				outputs[e.Test] = &strings.Builder{}
			}
			outputs[e.Test].WriteString(e.Output)
		case "pass", "fail", "skip":
			if e.Test == "" {
				continue
			}
			r.Tests = append(r.Tests, Test{r.ImportPath, e.Test, e.Action, e.Elapsed})
			if e.Action == "fail" {
				failed = append(failed, e.Test)
			}
		}
	}
	if r.Err != nil {
		var all strings.Builder
		for _, name := range failed {
			if o := outputs[name]; o != nil {
				all.WriteString(o.String())
			}
		}
		// A binary that panics or hangs ends in the middle of tests, whose output tells why.
		for name, o := range outputs {
			if !slices.ContainsFunc(r.Tests, func(t Test) bool { return t.Name == name }) && name != "" {
				all.WriteString(o.String())
			}
		}
		r.Output = all.String()
	}
	return scan.Err()
}
