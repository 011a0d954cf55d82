package tools

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/tool"
)

// Python runs programs in the sandbox. Its verdicts are the sandbox's. Each call is a program of its own; if the host
// keeps interpreters (sandbox.session), the calls of an episode are the cells of one interpreter.
var Python = Declaration{
	Spec: tool.Spec{
		Name: "python",
		// the names in rStar2-Agent's paper and in its released code
		Aliases: []string{"execute_python_code_with_standard_io", "python_code_with_standard_io"},
		Doc:     "runs a Python program and shows its output, or the value of its last expression",
		Schema:  tool.SchemaOf[program](), Repeat: tool.Sandboxed, Part: "sandbox",
	},
	Open: func(h Host) (tool.Tool, error) {
		if h.Notebooks != nil {
			return notebooks{h.Notebooks, h.AtOnce, programs{h.Limits, h.ExactCarets}}, nil
		}
		return python{h.Sandbox, programs{h.Limits, h.ExactCarets}}, nil
	},
}

// program holds the arguments of a call.
type program struct {
	Code  string `json:"code" doc:"the program"`
	Input string `json:"input,omitempty" doc:"what the program reads from standard input"`
}

// PythonArguments returns the arguments of a call that runs a program.
func PythonArguments(code, input string) json.RawMessage {
	data, err := json.Marshal(program{code, input})
	if err != nil {
		panic(fmt.Sprintf("tools: encode two texts: %v", err)) // texts always encode
	}
	return data
}

// NewPython returns the tool that runs each call as a program of its own.
func NewPython(e sandbox.Executor, limits sandbox.Limits) tool.Tool {
	return python{e, programs{limits: limits}}
}

type python struct {
	executor sandbox.Executor
	programs
}

// Spec describes the tool.
func (python) Spec() tool.Spec { return Python.Spec }

// Run runs the programs. A program on which the sandbox breaks is run once more by itself (sandbox.RunEach).
func (p python) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	results := make([]tool.Result, len(calls))
	var runs []sandbox.Call
	var at []int // index of each program's call
	for i, c := range calls {
		code, rejected := p.of(c)
		if rejected != nil {
			results[i] = *rejected
			continue
		}
		runs, at = append(runs, code), append(at, i)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(runs) == 0 {
		return results, nil
	}
	outcomes, err := sandbox.RunEach(ctx, p.executor, runs)
	if err != nil {
		return nil, err
	}
	broken := make(tool.CallErrors, len(calls))
	for i, o := range outcomes {
		results[at[i]], broken[at[i]] = resultOf(o.Result), o.Broken
	}
	return results, broken.OrNil()
}

// programs makes the sandbox's calls of the tool's.
type programs struct {
	limits      sandbox.Limits
	exactCarets bool
}

// of returns the program of a call, or the verdict on bad arguments.
func (p programs) of(c tool.Call) (sandbox.Call, *tool.Result) {
	given, rejected := tool.Decode[program](c.Arguments)
	if p.exactCarets && !strings.HasSuffix(given.Code, "\n") && len(given.Code) < sandbox.MostCode {
		given.Code += "\n"
	}
	return sandbox.Call{Code: given.Code, Stdin: given.Input, Limits: p.limits, Trace: c.Trace}, rejected
}

// resultOf returns a verdict of the sandbox as one of the tool's.
func resultOf(r sandbox.Result) tool.Result {
	return tool.Result{Status: tool.Status(r.Status), ExitCode: r.ExitCode, Stdout: r.Stdout, Stderr: r.Stderr,
		Value: r.Value, Timing: tool.Timing{Queue: r.Timing.Queue, Wall: r.Timing.Wall, CPU: r.Timing.CPU,
			Shared: r.Timing.Shared}}
}

// NewNotebooks returns the tool that runs the calls of each episode as cells of one interpreter of the pool, with at
// most atOnce interpreters at a time. The pool's interpreters are a cache of the record: one that is missing, or that
// has run anything else than the episode's earlier calls, is replaced by running these calls again.
func NewNotebooks(pool *session.Pool, atOnce int, limits sandbox.Limits) tool.Tool {
	return notebooks{pool, atOnce, programs{limits: limits}}
}

type notebooks struct {
	pool   *session.Pool
	atOnce int
	programs
}

// Spec describes the tool.
func (notebooks) Spec() tool.Spec {
	s := Python.Spec
	s.Stateful = true
	return s
}

// Run runs the cells.
func (n notebooks) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	results, broken := make([]tool.Result, len(calls)), make(tool.CallErrors, len(calls))
	books, at := n.books(calls, results)
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	outcomes, err := n.pool.RunNotebooks(ctx, books, n.atOnce, progressOf(ctx, len(calls), len(books)))
	if err != nil {
		return nil, err
	}
	for b, of := range outcomes {
		for i, o := range of {
			results[at[b][i]], broken[at[b][i]] = resultOf(o.Result), o.Broken
		}
	}
	return results, broken.OrNil()
}

// progressOf reports progress in calls. The pool counts notebooks, which are taken to be equally long.
func progressOf(ctx context.Context, calls, books int) func(done int) {
	var turn sync.Mutex
	reported := 0
	return func(done int) {
		turn.Lock()
		defer turn.Unlock()
		if now := done * calls / books; now > reported {
			tool.Done(ctx, now-reported)
			reported = now
		}
	}
}

// books returns a notebook for each episode with cells to run, in the order of their first calls, and the index of each
// cell's call. Calls with bad arguments are no cells: books writes their results.
func (n notebooks) books(calls []tool.Call, results []tool.Result) (books []session.Notebook, at [][]int) {
	byEpisode := map[string]int{}
	for i, c := range calls {
		cell, rejected := n.of(c)
		if rejected != nil {
			results[i] = *rejected
			continue
		}
		id := c.Key.Episode()
		b, ok := byEpisode[id]
		if !ok {
			b = len(books)
			byEpisode[id] = b
			books, at = append(books, session.Notebook{ID: id, Limits: n.limits, Past: n.past(c.Past)}), append(at, nil)
		}
		books[b].Cells, at[b] = append(books[b].Cells, cell), append(at[b], i)
	}
	return books, at
}

// past returns the cells that have run.
func (n notebooks) past(calls []tool.Ran) []session.Ran {
	var ran []session.Ran
	for _, c := range calls {
		if cell, rejected := n.of(c.Call); rejected == nil {
			ran = append(ran, session.Ran{Cell: cell, Result: sandbox.Result{Status: sandbox.Status(c.Result.Status),
				ExitCode: c.Result.ExitCode, Stdout: c.Result.Stdout, Stderr: c.Result.Stderr, Value: c.Result.Value}})
		}
	}
	return ran
}

// End ends the episode's interpreter.
func (n notebooks) End(ctx context.Context, episode string) error {
	if err := n.pool.End(ctx, episode); err != nil {
		return fmt.Errorf("end an interpreter: %w", err)
	}
	return nil
}
