package main

import (
	"context"
	"fmt"
	"maps"
	"strings"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// batchSize is how many calls are submitted at once when throughput is measured.
const batchSize = 64

// loaded is the call that is measured. plain replaces it if numpy and sympy are not installed.
var (
	loaded = program{code: "import numpy as np; print(int(np.arange(10).sum()))", output: "45\n"}
	plain  = program{code: "print(1+2)", output: "3\n"}
)

// program is code and its expected output.
type program struct{ code, output string }

// subject is the sandbox that is measured, in this process, and the call.
type subject struct {
	executor *zygote.Executor
	python   string // the executor's interpreter; "" if the executor finds one
	packages string
	call     sandbox.Call
	output   string
	versions map[string]string
	unloaded error // why numpy and sympy are not loaded
}

func openSubject(ctx context.Context) (subject, error) {
	python := bench.SandboxPython()
	executor, err := zygote.Open(zygote.Options{Python: python})
	if err != nil {
		return subject{}, err
	}
	_, version := executor.Python()
	s := subject{executor: executor, python: python, versions: map[string]string{"python": version}}
	s.take(loaded, sandbox.PackagesSympy)
	if s.unloaded = s.one(ctx); s.unloaded != nil {
		s.take(plain, sandbox.PackagesBare)
		if err := s.one(ctx); err != nil {
			executor.Close()
			return subject{}, err
		}
		return s, nil
	}
	versions, err := s.ask(ctx)
	if err != nil {
		executor.Close()
		return subject{}, err
	}
	maps.Copy(s.versions, versions)
	return s, nil
}

func (s *subject) take(p program, packages string) {
	s.packages, s.output = packages, p.output
	s.call = sandbox.Call{Code: p.code, Packages: packages}
}

// ask returns the versions of the loaded packages.
func (s *subject) ask(ctx context.Context) (map[string]string, error) {
	call := s.call
	call.Code = "import numpy, sympy; print(numpy.__version__, sympy.__version__)"
	results, err := s.executor.Run(ctx, []sandbox.Call{call})
	if err != nil {
		return nil, err
	}
	words := strings.Fields(results[0].Stdout)
	if len(words) != 2 {
		return nil, fmt.Errorf("ask for versions: got %s, %q", results[0].Status, results[0].Stderr)
	}
	return map[string]string{"numpy": words[0], "sympy": words[1]}, nil
}

// absent returns the initial list of missing figures.
func (s *subject) absent() map[string]string {
	absent := map[string]string{}
	if s.unloaded != nil {
		absent["versions.numpy"] = "numpy and sympy are not loaded, so all figures are of a bare interpreter: " +
			s.unloaded.Error()
	}
	return absent
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
