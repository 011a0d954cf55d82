package sandbox

import (
	"context"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// batchSize is how many calls are submitted at once when throughput is measured.
const batchSize = 64

// subject is the sandbox that is measured, in this process, and the call.
type subject struct {
	executor *zygote.Executor
	python   string // the executor's interpreter; "" if the executor finds one
	call     sandbox.Call
	output   string
}

// theCall needs numpy and sympy.
var theCall = sandbox.Call{Code: "import numpy as np; print(int(np.arange(10).sum()))", Packages: sandbox.PackagesSympy}

func openSubject(ctx context.Context) (subject, error) {
	python := bench.SandboxPython()
	executor, err := zygote.Open(zygote.Options{Python: python})
	if err != nil {
		return subject{}, err
	}
	s := subject{executor: executor, python: python, call: theCall, output: "45\n"}
	if err := s.one(ctx); err != nil {
		executor.Close()
		return subject{}, fmt.Errorf("%w (tools/sandbox-python.sh makes a Python with numpy and sympy)", err)
	}
	return s, nil
}

// one runs the call by itself.
func (s *subject) one(ctx context.Context) error { return s.run(ctx, 1) }

// batch runs the call batchSize times.
func (s *subject) batch(ctx context.Context) error { return s.run(ctx, batchSize) }

func (s *subject) run(ctx context.Context, n int) error {
	calls := make([]sandbox.Call, n)
	for i := range calls {
		calls[i] = s.call
	}
	results, err := s.executor.Run(ctx, calls)
	if err != nil {
		return err
	}
	for _, r := range results {
		if err := check(r, s.output); err != nil {
			return err
		}
	}
	return nil
}

// check returns an error unless the verdict is ok with this output.
func check(r sandbox.Result, output string) error {
	if r.Status != sandbox.StatusOK || r.Stdout != output {
		return fmt.Errorf("the call ended as %s and printed %q, want %q: %s", r.Status, r.Stdout, output,
			lastLine(r.Stderr))
	}
	return nil
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
