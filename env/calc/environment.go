package calc

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment.
var Declaration = env.Declaration{
	Name: "calc", Doc: "generated integer arithmetic with a Python tool",
	Sandboxed: true, Demonstrated: true, Protocol: "rstar2",
	Rewards: []string{
		"rstar2_outcome", "spear", "spear_math", "spear_math_qwen3", "retool", "dapo_strict", "prs_short", "prs_long",
		"prs_general", "exact_match", "f1",
		"arlarena", "spear_agent", "last_number",
	},
	Strings: Added,
	Open:    Open,
}

// Environment is arithmetic as an environment. Its tasks are questions that a policy answers after calling the tool.
type Environment struct {
	env.Questions
	shares Shares

	mu      sync.Mutex
	heldOut []env.Task // the beginning of the held-out split, as far as it has been requested
}

// Open makes the environment. Without shares of levels, it supplies only held-out tasks and demonstrations.
func Open(o env.Options) (env.Environment, error) {
	e := &Environment{Questions: env.Questions{Gold: goldOf, Mark: env.SameNumber}}
	var err error
	if o.LevelShares != nil {
		e.shares, err = ParseShares(o.LevelShares)
	}
	return e, err
}

// Name returns "calc".
func (*Environment) Name() string { return Declaration.Name }

// Task draws a problem. A training problem comes from a stream for its step and index. A held-out problem comes from
// one list of distinct problems that is the same for all runs.
func (e *Environment) Task(_ context.Context, at env.Draw) (env.Task, error) {
	heldOut, err := at.Split.HeldOut()
	switch {
	case err != nil:
		return env.Task{}, fmt.Errorf("draw a problem: %w", err)
	case heldOut:
		return e.heldOutTask(at.Index)
	case e.shares == nil:
		return env.Task{}, fmt.Errorf("draw a problem: the environment was opened without shares of levels")
	}
	return Training(at.Seed, at.Step, at.Index, e.shares), nil
}

// heldOutTask returns the problem at an index of Heldout.
func (e *Environment) heldOutTask(index int) (env.Task, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if index >= len(e.heldOut) {
		levels := MaxLevel - MinLevel + 1
		n := max(2*len(e.heldOut), index+1)
		longer, err := Heldout((n + levels - 1) / levels * levels)
		if err != nil {
			return env.Task{}, err
		}
		e.heldOut = longer
	}
	return e.heldOut[index], nil
}

// goldOf computes the value of a task's expression.
func goldOf(task env.Task) (string, error) {
	n, err := parse(task.Spec)
	if err != nil || problemID(task.Spec) != task.ID {
		return "", fmt.Errorf("%q is not its expression", task.Spec)
	}
	value, err := n.eval()
	return strconv.FormatInt(value, 10), err
}

// Draw draws a problem of one of the lesson's levels that is not held out.
func (e *Environment) Draw(rng *rand.Rand, l env.Lesson) (env.Task, error) {
	shares := EqualShares(l.Levels...)
	if len(l.Levels) == 0 { // the lesson is that of a mix, which has no levels of its own
		shares = e.shares
	}
	if err := shares.Validate(); err != nil {
		return env.Task{}, err
	}
	if err := noiseOf(l).Validate(); err != nil {
		return env.Task{}, err
	}
	return Sample(rng, shares), nil
}

// noiseOf returns the probabilities of a lesson's faults. A lesson with one number for all faults divides it equally.
func noiseOf(l env.Lesson) Noise {
	if l.Noise == (env.Noise{}) {
		each := l.Faulty / 5
		return Noise{BadCode: each, WrongOrder: each, MissingPrint: each, NoTool: each, WrongCopy: each}
	}
	return Noise(l.Noise)
}

// Demonstrate solves a problem as the noisy teacher does.
func (*Environment) Demonstrate(_ context.Context, rng *rand.Rand, task env.Task, l env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	steps, err := Demonstrate(rng, task, noiseOf(l), act)
	if err != nil {
		return err
	}
	_, err = act(steps[len(steps)-1])
	return err
}

// Interpret implements env.Interpreter: a warm start need not run the teacher's plain arithmetic in the sandbox.
func (*Environment) Interpret(code string) (stdout, value string, known bool) { return Interpret(code) }
