package mix

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/seed"
)

// Environment is a mix of open environments.
type Environment struct {
	parts   []opened
	weights []float64
}

// opened is an open part.
type opened struct {
	env.Environment
	label string
}

// heldOutSeed places the parts in the held-out split, which is the same for all runs.
const heldOutSeed = 0

// open opens the parts. The result has the further interfaces that all parts have: an expert or a teacher, and scores.
// It has the documents of the part that has some.
func open(parts []Part, o env.Options) (env.Environment, error) {
	e := &Environment{}
	for _, p := range parts {
		of := o
		of.Settings, of.LevelShares = p.Settings, p.LevelShares
		world, err := p.Declaration.Open(of)
		if err != nil {
			return nil, fmt.Errorf("part %s: %w", p.Label, err)
		}
		e.parts, e.weights = append(e.parts, opened{world, p.Label}), append(e.weights, p.Weight)
	}
	return e.extended()
}

// Name returns "mix".
func (e *Environment) Name() string { return Declaration.Name }

// Code implements env.Coded: the files of all parts.
func (e *Environment) Code(ctx context.Context) (string, error) {
	var all string
	for _, p := range e.parts {
		if coded, ok := p.Environment.(env.Coded); ok {
			files, err := coded.Code(ctx)
			if err != nil {
				return "", fmt.Errorf("part %s: %w", p.label, err)
			}
			all += files
		}
	}
	return all, nil
}

// Try implements env.Tried for the parts that do.
func (e *Environment) Try(ctx context.Context) error {
	for _, p := range e.parts {
		if other, ok := p.Environment.(env.Tried); ok {
			if err := other.Try(ctx); err != nil {
				return fmt.Errorf("part %s: %w", p.label, err)
			}
		}
	}
	return nil
}

// Task returns the task of a draw: that of the part to which the draw's place belongs.
func (e *Environment) Task(ctx context.Context, at env.Draw) (env.Task, error) {
	runSeed := at.Seed
	if at.Split == env.HeldOut {
		runSeed = heldOutSeed
	}
	place := at.Index
	if at.PerStep > 0 {
		place = at.Place()
	}
	i, index := divide(e.weights, runSeed).at(place)
	p := e.parts[i]
	of := env.Draw{Split: at.Split, Seed: seed.Derive("mix/"+p.label, at.Seed), Step: min(at.Step, 1), Index: index,
		PerStep: at.PerStep}
	if at.PerStep == 0 { // the step is not part of the place
		of.Step = at.Step
	}
	task, err := p.Task(ctx, of)
	if err != nil {
		return env.Task{}, fmt.Errorf("part %s: %w", p.label, err)
	}
	task.Part = p.label
	return task, nil
}

// part returns the part with a label.
func (e *Environment) part(label string) (opened, error) {
	i := slices.IndexFunc(e.parts, func(p opened) bool { return p.label == label })
	if i < 0 {
		return opened{}, fmt.Errorf("the mix has no part %q", label)
	}
	return e.parts[i], nil
}

// of returns the part of a task, and the task as the part knows it.
func (e *Environment) of(task env.Task) (opened, env.Task, error) {
	p, err := e.part(task.Part)
	task.Part = ""
	return p, task, err
}

// Instruction returns the instruction of the task's part.
func (e *Environment) Instruction(task env.Task) (string, error) {
	p, task, err := e.of(task)
	if err != nil {
		return "", err
	}
	return p.Instruction(task)
}

// Reset begins an episode of a task in its part.
func (e *Environment) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	p, task, err := e.of(task)
	if err != nil {
		return nil, env.Observation{}, err
	}
	state, seen, err := p.Reset(ctx, task)
	return p.state(state), seen, err
}

// Classify implements env.Classifier for the parts that do.
func (e *Environment) Classify(task env.Task, state env.State) (env.Task, error) {
	p, own, err := e.stateOf(state)
	if err != nil {
		return task, err
	}
	if c, ok := p.Environment.(env.Classifier); ok {
		return c.Classify(task, own)
	}
	return task, nil
}

// mark separates the label of a part from its state. No label holds it.
const mark = ":"

// state returns a state of the mix. A part that ends an episode may return no state.
func (p opened) state(s env.State) env.State {
	if s == nil {
		return nil
	}
	return append(env.State(p.label+mark), s...)
}

// stateOf returns the part that a state belongs to, and the part's own state.
func (e *Environment) stateOf(s env.State) (opened, env.State, error) {
	label, own, found := bytes.Cut(s, []byte(mark))
	if !found {
		return opened{}, nil, fmt.Errorf("the state does not begin with the label of a part")
	}
	p, err := e.part(string(label))
	return p, own, err
}

// Step applies an action in the part that the state belongs to.
func (e *Environment) Step(ctx context.Context, state env.State, action string) (env.State, env.Transition, error) {
	p, own, err := e.stateOf(state)
	if err != nil {
		return nil, env.Transition{}, err
	}
	next, got, err := p.Step(ctx, own, action)
	return p.state(next), got, err
}

// Situation returns the situation of the state's part, with its label.
func (e *Environment) Situation(state env.State) (string, error) {
	p, own, err := e.stateOf(state)
	if err != nil {
		return "", err
	}
	where, err := p.Situation(own)
	return p.label + mark + where, err
}

// HeldOut counts the held-out tasks of each part among the first n.
func HeldOut(parts []Part, n int) []int {
	weights, counts := make([]float64, len(parts)), make([]int, len(parts))
	for i, p := range parts {
		weights[i] = p.Weight
	}
	s := divide(weights, heldOutSeed)
	for place := range n {
		i, _ := s.at(place)
		counts[i]++
	}
	return counts
}
