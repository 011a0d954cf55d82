package mix

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/env"
)

// The further interfaces of a mix. The program asks an environment whether it has them, so a mix must have exactly
// those that its parts can serve.

// extended returns the mix with the interfaces that its parts can serve.
func (e *Environment) extended() (env.Environment, error) {
	plays, scores, teaches := expert{e}, scorer{e}, teacher{e}
	library, err := e.library()
	if err != nil {
		return nil, err
	}
	switch {
	case all[env.Expert](e) && all[env.Scorer](e):
		return struct {
			*Environment
			expert
			scorer
		}{e, plays, scores}, nil
	case all[env.Expert](e):
		return struct {
			*Environment
			expert
		}{e, plays}, nil
	case all[env.Scorer](e):
		return struct {
			*Environment
			scorer
		}{e, scores}, nil
	case all[env.Teacher](e) && library != nil:
		return struct {
			*Environment
			teacher
			env.Library
		}{e, teaches, library}, nil
	case all[env.Teacher](e):
		return struct {
			*Environment
			teacher
		}{e, teaches}, nil
	case library != nil:
		return struct {
			*Environment
			env.Library
		}{e, library}, nil
	}
	return e, nil
}

// all reports whether every part has an interface.
func all[I any](e *Environment) bool {
	for _, p := range e.parts {
		if _, ok := p.Environment.(I); !ok {
			return false
		}
	}
	return true
}

// library returns the documents of the part that has some, or nil.
func (e *Environment) library() (env.Library, error) {
	var found env.Library
	for _, p := range e.parts {
		library, ok := p.Environment.(env.Library)
		if ok && found != nil {
			return nil, errors.New("two parts have documents, and the tool search reads those of one part")
		}
		if ok {
			found = library
		}
	}
	return found, nil
}

// expert solves a task by the expert of its part.
type expert struct{ mix *Environment }

// Solve implements env.Expert.
func (x expert) Solve(ctx context.Context, state env.State) ([]string, error) {
	p, own, err := x.mix.stateOf(state)
	if err != nil {
		return nil, err
	}
	return p.Environment.(env.Expert).Solve(ctx, own)
}

// Mislead implements env.Misleader for parts that list no actions: the part's own wrong action. A part without any is
// not misled.
func (x expert) Mislead(ctx context.Context, state env.State, draw uint64) (string, error) {
	p, own, err := x.mix.stateOf(state)
	if err != nil {
		return "", err
	}
	if m, ok := p.Environment.(env.Misleader); ok {
		return m.Mislead(ctx, own, draw)
	}
	plan, err := p.Environment.(env.Expert).Solve(ctx, own)
	if errors.Is(err, env.ErrUnsolved) || err == nil && len(plan) == 0 {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	return plan[0], nil
}

// scorer scores an episode by the score of its part.
type scorer struct{ mix *Environment }

// Score implements env.Scorer.
func (s scorer) Score(state env.State) (*float64, error) {
	p, own, err := s.mix.stateOf(state)
	if err != nil {
		return nil, err
	}
	return p.Environment.(env.Scorer).Score(own)
}

// teacher demonstrates tasks of each part with the probability of its share.
type teacher struct{ mix *Environment }

// Draw implements env.Teacher.
func (t teacher) Draw(rng *rand.Rand, l env.Lesson) (env.Task, error) {
	p := t.mix.parts[divide(t.mix.weights, 0).draw(rng.Uint64())]
	task, err := p.Environment.(env.Teacher).Draw(rng, l)
	if err != nil {
		return task, fmt.Errorf("part %s: %w", p.label, err)
	}
	task.Part = p.label
	return task, nil
}

// Demonstrate implements env.Teacher.
func (t teacher) Demonstrate(ctx context.Context, rng *rand.Rand, task env.Task, l env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	p, own, err := t.mix.of(task)
	if err != nil {
		return err
	}
	return p.Environment.(env.Teacher).Demonstrate(ctx, rng, own, l, act)
}

// Right implements env.Marker.
func (t teacher) Right(task env.Task, answer string) bool {
	p, own, err := t.mix.of(task)
	if err != nil {
		return false
	}
	if m, ok := p.Environment.(env.Marker); ok {
		return m.Right(own, answer)
	}
	return answer == own.Answer
}
