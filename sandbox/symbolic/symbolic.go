// Package symbolic asks a sandbox that has sympy whether two written answers are the same mathematics.
//
// Glossary. A *pair* is an answer and the gold that it is held against. A *grade* says how they compared:
// *equal*, *different*, or *unreadable* where one of them is no expression, and names the *grader*, sympy with
// its version. What gives no grade (a time-out, no memory, a sandbox that breaks) is *breakage*, never a grade.
//
// A pair is one call. The program is four files in one: bounds.py has the names and limits, expression.py reads
// TeX and plain notation by recursive descent, value.py evaluates to 120 digits at points that are drawn from the
// pair, compare.py takes lists, intervals, equations and matrices apart. It hands no text to sympy's own parsers, which evaluate names; and it decides by canonical form and
// by values, never by simplification, whose cost has no bound. So a grade is a function of the pair and of the
// grader, and limits of time are far from what any pair of bounded length takes.
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

// Pair is an answer and the gold that it is held against.
type Pair struct {
	Answer string `json:"answer"`
	Gold   string `json:"gold"`
}

// Grade is how a pair compared.
type Grade struct {
	Verdict Verdict `json:"verdict"`
	Grader  string  `json:"grader"` // "sympy 1.14.0": the version that the call measured
}

// Verdict says how a pair compared.
type Verdict string

// The verdicts.
const (
	Equal      Verdict = "equal"
	Different  Verdict = "different"
	Unreadable Verdict = "unreadable"
)

// ErrNoSympy: the sandbox's interpreter has no sympy.
var ErrNoSympy = errors.New("the sandbox has no interpreter with numpy, sympy and mpmath: name one by ROPEWALK_SANDBOX_PYTHON where the worker runs (tools/sandbox-python.sh makes one)")

// limits bound one call, whatever a recipe gives its tools: a grade must not depend on those. Pairs take some
// hundredths of a second.
var limits = sandbox.Limits{CPU: 10 * time.Second, Wall: 100 * time.Second, MemoryBytes: 512 << 20, OutputBytes: 4 << 10}

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

// Call is the call that grades a pair.
func Call(p Pair) (sandbox.Call, error) {
	input, err := json.Marshal(p)
	if err != nil {
		return sandbox.Call{}, fmt.Errorf("encode a pair: %w", err)
	}
	return sandbox.Call{Packages: sandbox.PackagesSympy, Code: bounds + expressions + values + comparisons, Stdin: string(input), Limits: limits}, nil
}

// Read returns a call's grade. An outcome without one is breakage, which the error names.
func Read(o sandbox.Outcome) (Grade, error) {
	var g Grade
	switch {
	case o.Broken != nil:
		return g, o.Broken
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

// Available returns ErrNoSympy where the sandbox has none, or why it could not be asked.
func Available(ctx context.Context, e sandbox.Executor) error {
	graded, err := Run(ctx, e, []Pair{{Answer: "x+1", Gold: "1+x"}})
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
