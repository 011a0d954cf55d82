package calc

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
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
	shares Shares

	mu      sync.Mutex
	heldOut []env.Task // the beginning of the held-out split, as far as it has been requested
}

// Open makes the environment. Without shares of levels, it supplies only held-out tasks and demonstrations.
func Open(o env.Options) (env.Environment, error) {
	if o.LevelShares == nil {
		return &Environment{}, nil
	}
	shares, err := ParseShares(o.LevelShares)
	if err != nil {
		return nil, err
	}
	return &Environment{shares: shares}, nil
}

// Name returns "calc".
func (*Environment) Name() string { return Declaration.Name }

// Task draws a problem. A training problem comes from a stream for its step and index. A held-out problem comes from
// one list of distinct problems that is the same for all runs.
func (e *Environment) Task(_ context.Context, at env.Draw) (env.Task, error) {
	switch {
	case at.Split == env.HeldOut:
		return e.heldOutTask(at.Index)
	case at.Split != env.Train:
		return env.Task{}, fmt.Errorf("draw a problem: there is no split %q", at.Split)
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

// Instruction is empty, because the text of a problem says everything.
func (*Environment) Instruction(env.Task) (string, error) { return "", nil }

// question is an episode's state in JSON.
type question struct {
	Expression string `json:"expression"`
	Answer     string `json:"answer"` // gold
	Ended      bool   `json:"ended,omitempty"`
}

// Reset asks the question.
func (*Environment) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	n, err := parse(task.Spec)
	if err != nil || problemID(task.Spec) != task.ID {
		return nil, env.Observation{}, fmt.Errorf("read problem %s: %q is not its expression", task.ID, task.Spec)
	}
	value, err := n.eval()
	if err != nil {
		return nil, env.Observation{}, fmt.Errorf("read problem %s: %w", task.ID, err)
	}
	state, err := json.Marshal(question{Expression: task.Spec, Answer: strconv.FormatInt(value, 10)})
	return state, env.Seen(task.Text), err
}

// Step takes the answer and ends the episode. An answer that is not a whole number is invalid.
func (*Environment) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	var none env.Transition
	if err := ctx.Err(); err != nil {
		return nil, none, err
	}
	q, err := readQuestion(at)
	if err != nil {
		return nil, none, err
	}
	if q.Ended {
		return nil, none, fmt.Errorf("answer a problem: %w", env.ErrEnded)
	}
	value, err := strconv.ParseInt(strings.TrimSpace(action), 10, 64)
	t := env.Transition{Done: true, Valid: err == nil}
	t.Observation.Parts = []env.Part{{Kind: env.PartText, Text: "wrong"}}
	if t.Valid && strconv.FormatInt(value, 10) == q.Answer {
		t.Success, t.Reward = true, 1
		t.Observation.Parts[0].Text = "right"
	}
	q.Ended = true
	state, err := json.Marshal(q)
	return state, t, err
}

// Situation identifies the state. An episode has one turn.
func (*Environment) Situation(at env.State) (string, error) {
	q, err := readQuestion(at)
	return fmt.Sprintf("%s %t", q.Expression, q.Ended), err
}

func readQuestion(at env.State) (q question, err error) {
	if err := env.Decode(at, &q); err != nil {
		return q, fmt.Errorf("read the state of a problem: %w", err)
	}
	if q.Expression == "" || q.Answer == "" {
		return q, fmt.Errorf("read the state of a problem: expression or answer is missing")
	}
	return q, nil
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

// Executor evaluates the teacher's plain arithmetic in process, so that a warm start does not run it in the sandbox.
// All other code goes to the next executor.
func (*Environment) Executor(next sandbox.Executor) sandbox.Executor { return Interpreter{Next: next} }
