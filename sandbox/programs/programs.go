// Package programs decides whether a program passes its tests, by calls to a sandbox.
//
//	env.Tests, program ─▶ callOf ─▶ sandbox.Executor ─▶ read ─▶ symbolic.Grade
//
// The *tests* are HumanEval's: a prompt, the name of a function and what it must do. A *program* defines the function,
// or is the body that the prompt's function lacks. The pair of program and tests is graded like a pair of answer and
// gold: *equal* means that the program passes all tests, *different* that it fails one, cannot be read or ends early,
// and *unreadable* that a limit ended it; the grader then names the limit. An outcome without a verdict is *breakage*,
// never a grade.
//
// A pair is one call (check.py). The program runs in a process that is forked before tests and token are read, and that
// has neither. Arguments, results and exceptions cross between the two as data, from which each side builds values of
// its own classes: the standard library's, numpy's and those that the prompt defines. An object of a class of the
// program's own stays there, and the tests can call it and read its attributes. A program has passed if the judge
// prints the token after the last test, when it has ended the program's process.
package programs

import (
	"context"
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
)

// grader names the program that grades.
const grader = "tests"

//go:embed check.py
var check string

// callOf returns the call that grades a pair of program and gold, under a recipe's limits.
func callOf(p symbolic.Pair, limits sandbox.Limits) (sandbox.Call, error) {
	tests, err := env.ReadTests(p.Gold)
	if err != nil {
		return sandbox.Call{}, err
	}
	stdin, err := json.Marshal(struct {
		env.Tests
		Token string `json:"token"`
	}{tests, token(p)})
	if err != nil {
		return sandbox.Call{}, fmt.Errorf("write the tests of a program: %w", err)
	}
	program, err := json.Marshal(p.Answer) // a JSON string is one of Python's
	if err != nil {
		return sandbox.Call{}, fmt.Errorf("write a program: %w", err)
	}
	limits = limits.OrDefault()
	limits.Processes = min(limits.Processes+1, sandbox.MostLimits.Processes) // judge and program are two
	// the code mentions the program's modules, by which the executor chooses an interpreter
	return sandbox.Call{Code: check + "grade(" + string(program) + ")\n", Stdin: string(stdin), Limits: limits}, nil
}

// token is what the call prints after the last test.
func token(p symbolic.Pair) string {
	sum := sha256.Sum256([]byte("passed\n" + p.Gold + "\n" + p.Answer))
	return hex.EncodeToString(sum[:])
}

// read returns a call's grade. A limit that ended the call is a verdict, and so is a process that the program killed.
// The error describes breakage.
func read(p symbolic.Pair, o sandbox.Outcome) (symbolic.Grade, error) {
	if o.Broken != nil {
		return symbolic.Grade{}, o.Broken
	}
	switch o.Status {
	case sandbox.StatusOK:
		if strings.HasSuffix(o.Stdout, "\n"+token(p)+"\n") {
			return symbolic.Grade{Verdict: symbolic.Equal, Grader: grader}, nil
		}
		return symbolic.Grade{Verdict: symbolic.Different, Grader: grader}, nil
	case sandbox.StatusRuntime, sandbox.StatusSyntax, sandbox.StatusKilled:
		return symbolic.Grade{Verdict: symbolic.Different, Grader: grader}, nil
	case sandbox.StatusTimeoutCPU, sandbox.StatusTimeoutWall, sandbox.StatusOutOfMemory, sandbox.StatusOutputLimit,
		sandbox.StatusFileLimit, sandbox.StatusProcessLimit:
		return symbolic.Grade{Verdict: symbolic.Unreadable, Grader: "limit " + string(o.Status)}, nil
	}
	return symbolic.Grade{}, fmt.Errorf("the call that tests a program gave no verdict: %s", o.Status)
}

// Run grades pairs, in their order. A call that the wall clock ended, or whose program a signal ended, is run once more
// by itself: the machine or a person may have caused that.
//
// An error means that the sandbox is broken and no pair is to blame: the errors of sandbox.RunEach, or several pairs of
// which none got a verdict.
func Run(ctx context.Context, e sandbox.Executor, pairs []symbolic.Pair, limits sandbox.Limits) ([]symbolic.Graded,
	error) {
	calls := make([]sandbox.Call, len(pairs))
	for i, p := range pairs {
		var err error
		if calls[i], err = callOf(p, limits); err != nil {
			return nil, err
		}
	}
	outcomes, err := sandbox.RunEach(ctx, e, calls)
	if err != nil {
		return nil, fmt.Errorf("test programs: %w", err)
	}
	out := make([]symbolic.Graded, len(pairs))
	var broken []error
	for i, o := range outcomes {
		out[i].CPU = o.Timing.CPU
		if o.Broken == nil && (o.Status == sandbox.StatusTimeoutWall || o.Status == sandbox.StatusKilled) {
			second, err := sandbox.RunEach(ctx, e, calls[i:i+1])
			if err != nil {
				return nil, fmt.Errorf("test a program once more: %w", err)
			}
			o = second[0]
			out[i].CPU += o.Timing.CPU
		}
		if out[i].Grade, out[i].Broken = read(pairs[i], o); out[i].Broken != nil {
			broken = append(broken, out[i].Broken)
		}
	}
	if len(pairs) > 1 && len(broken) == len(pairs) {
		return nil, fmt.Errorf("test %d programs: none got a verdict: %w", len(pairs), broken[0])
	}
	return out, nil
}
