// Package symbolic decides whether two written answers are mathematically the same, by calls to a sandbox that has
// sympy.
//
//	Pair ─▶ callOf ─▶ sandbox.Executor ─▶ read ─▶ Grade
//
// A *pair* is an answer and the gold answer that it is compared with. A *grade* says how they compare (*equal*,
// *different*, or *unreadable* if one of them is not an expression) and names the *grader*: sympy with its version, or
// the limit that ended the comparison. The cost of an answer is the answer's own fault, so a limit makes it unreadable.
// An outcome without a grade (a sandbox that breaks, a process that was killed from outside) is *breakage*, never a
// grade.
//
// A pair is one call. Its program consists of four files: bounds.py has the names and limits, expression.py parses TeX
// and plain notation by recursive descent, value.py evaluates to 120 digits at points derived from the pair and around
// the kinks of its functions, and compare.py parses lists, intervals, equations and matrices. The program passes no
// text to sympy's own parsers, which evaluate names. It decides by canonical form and by values, never by
// simplification, whose cost has no bound. The bits of every result, of numbers under roots and of all results together
// are bounded (bounds.py); whatever exceeds a bound is unreadable. So a grade depends only on the pair and the grader,
// and no pair of bounded length gets near a time limit.
package symbolic

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// Pair is an answer and the gold answer that it is compared with.
type Pair struct {
	Answer string `json:"answer"`
	Gold   string `json:"gold"`
}

// Grade says how a pair compares.
type Grade struct {
	Verdict Verdict `json:"verdict"`
	Grader  string  `json:"grader"` // "sympy 1.14.0", with the version in the sandbox; or "limit timeout_cpu"
}

// Verdict is the result of a comparison.
type Verdict string

// The verdicts.
const (
	Equal      Verdict = "equal"
	Different  Verdict = "different"
	Unreadable Verdict = "unreadable"
)

// ErrNoSympy means that the sandbox's interpreter has no sympy.
var ErrNoSympy = errors.New("the sandbox has no interpreter with numpy, sympy and mpmath: " +
	"tools/sandbox-python.sh makes one in .tools, which a worker that starts there then finds; or name one by " +
	"ROPEWALK_SANDBOX_PYTHON where the worker runs")

// limits apply to each call, whatever limits a recipe gives its tools, because a grade must not depend on those. A pair
// takes some hundredths of a second.
var limits = sandbox.Limits{CPU: 10 * time.Second, Wall: 100 * time.Second, MemoryBytes: 512 << 20,
	OutputBytes: 4 << 10}

var (
	//go:embed bounds.py
	bounds string
	//go:embed expression.py
	expressions string
	//go:embed value.py
	values string
	//go:embed compare.py
	comparisons string
)

// callOf returns the call that grades a pair.
func callOf(p Pair) (sandbox.Call, error) {
	input, err := json.Marshal(p)
	if err != nil {
		return sandbox.Call{}, fmt.Errorf("encode a pair: %w", err)
	}
	return sandbox.Call{Packages: sandbox.PackagesSympy, Code: bounds + expressions + values + comparisons,
		Stdin: string(input), Limits: limits}, nil
}

// read returns a call's grade. If a limit ended the call, the pair is unreadable. Any other outcome without a grade is
// breakage, which the error describes.
func read(o sandbox.Outcome) (Grade, error) {
	var g Grade
	switch {
	case o.Broken != nil:
		return g, o.Broken
	case limited(o):
		return Grade{Verdict: Unreadable, Grader: "limit " + string(o.Status)}, nil
	case o.Status != sandbox.StatusOK:
		return g, fmt.Errorf("the call that compares gave no verdict: %s", o.Status)
	}
	if err := json.Unmarshal([]byte(o.Stdout), &g); err != nil {
		return Grade{}, fmt.Errorf("read the verdict: %w", err)
	}
	switch g.Verdict {
	case Equal, Different, Unreadable:
		return g, nil
	}
	return Grade{}, fmt.Errorf("read the verdict: %q is none", g.Verdict)
}

// limited reports whether a call ended because of what its pair cost or raised. A process that was killed did not: the
// kill came from outside.
func limited(o sandbox.Outcome) bool {
	if o.Broken != nil {
		return false
	}
	switch o.Status {
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall, sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit,
		sandbox.StatusRuntime:
		return true
	}
	return false
}

// probe is a pair that every sandbox with sympy grades as equal.
var probe = Pair{Answer: "x+1", Gold: "1+x"}

// Available returns ErrNoSympy if the sandbox has no sympy, or the reason why it could not be asked.
func Available(ctx context.Context, e sandbox.Executor) error {
	graded, err := Run(ctx, e, []Pair{probe})
	switch {
	case err != nil:
		return err
	case graded[0].Broken != nil:
		return graded[0].Broken
	case graded[0].Verdict != Equal:
		return fmt.Errorf("%s says that x+1 and 1+x are %s", graded[0].Grader, graded[0].Verdict)
	}
	return nil
}
