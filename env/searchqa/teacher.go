package searchqa

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/words"
)

// Names of the tools that the teacher calls, and of their arguments.
const (
	searchTool = "search"
	browseTool = "browse"
)

// fault is a mistake of a demonstration.
type fault int

const (
	noFault fault = iota
	// hasty stops before the last document and answers with what it has found so far.
	hasty
	// astray reads the wrong line of the results, and goes on from there.
	astray
	// astrayQuery searches for another document and guesses.
	astrayQuery
	// broken writes a call that is not closed. Every other time it guesses then.
	broken
	// guessing answers without a search.
	guessing
	faults
)

// Right reports whether an answer equals one of the golds, as exact match compares them.
func (*Environment) Right(task env.Task, answer string) bool {
	return words.Exact(answer, env.SplitGolds(task.Answer))
}

// Draw draws a training question.
func (e *Environment) Draw(rng *rand.Rand, l env.Lesson) (env.Task, error) {
	if !(l.Faulty >= 0 && l.Faulty <= 1) {
		return env.Task{}, fmt.Errorf("read the teacher's noise: %g is not a chance", l.Faulty)
	}
	of := e.train[rng.IntN(len(e.train))]
	return of[rng.IntN(len(of))].task()
}

// Demonstrate answers a question: it searches for each document that the answer needs, reads the document where the
// result does not show the fact, and answers. A share of the demonstrations (Lesson.Faulty) has one fault, each kind
// equally often.
func (e *Environment) Demonstrate(_ context.Context, rng *rand.Rand, task env.Task, l env.Lesson,
	act func(env.Move) (env.Shown, error)) error {
	q, err := readTask(task)
	if err != nil {
		return fmt.Errorf("demonstrate question %s: %w", task.ID, err)
	}
	s := scholar{rng: rng, corpus: e.corpus, q: q, browses: slices.Contains(l.Tools, browseTool), act: act}
	f := noFault
	if rng.Float64() < l.Faulty {
		f = 1 + fault(rng.IntN(int(faults)-1))
	}
	answer, err := s.solve(f)
	if err != nil {
		return fmt.Errorf("demonstrate question %s: %w", task.ID, err)
	}
	_, err = act(env.Move{Answer: answer})
	return err
}

// scholar answers one question.
type scholar struct {
	rng     *rand.Rand
	corpus  *corpus
	q       question
	browses bool
	act     func(env.Move) (env.Shown, error)
}

// solve makes the calls and returns the answer.
func (s *scholar) solve(f fault) (string, error) {
	last := len(s.q.Documents) - 1
	switch f {
	case guessing:
		return s.guess(), nil
	case astrayQuery:
		_, err := s.search(s.corpus.entities[s.rng.IntN(len(s.corpus.entities))].title, false)
		return s.guess(), err
	case broken:
		if _, err := s.search(s.q.Documents[0], true); err != nil || s.rng.IntN(2) == 0 {
			return s.guess(), err
		}
	case hasty:
		last = s.rng.IntN(len(s.q.Documents)) - 1
	}
	wrong := -1
	if f == astray {
		wrong = s.rng.IntN(len(s.q.Documents))
	}
	for i := 0; i <= last; i++ {
		shown, err := s.search(s.q.Documents[i], false)
		if err != nil {
			return "", err
		}
		if i == wrong {
			return s.misled(shown.Text), nil
		}
		if s.browses && !strings.Contains(shown.Text, s.q.Reads[i]) {
			if _, err := s.call(browseTool, "document", s.q.Documents[i], false); err != nil {
				return "", err
			}
		}
	}
	switch {
	case f == hasty && last >= 0:
		return s.q.Reads[last], nil
	case f == hasty:
		return s.guess(), nil
	}
	return s.q.Golds[0], nil
}

// search searches for a title.
func (s *scholar) search(title string, cut bool) (env.Shown, error) {
	return s.call(searchTool, "query", title, cut)
}

func (s *scholar) call(tool, argument, value string, cut bool) (env.Shown, error) {
	arguments, err := json.Marshal(map[string]string{argument: value})
	if err != nil {
		return env.Shown{}, err
	}
	return s.act(env.Move{Tool: tool, Arguments: string(arguments), Broken: cut})
}

// guess names an entity of the kind of the answer. An answer that names none has a number or several items, and the
// guess is any city.
func (s *scholar) guess() string {
	of := city
	for _, e := range s.corpus.entities {
		if e.name == s.q.Golds[0] {
			of = e.kind
			break
		}
	}
	return s.corpus.entities[s.corpus.of[of][s.rng.IntN(len(s.corpus.of[of]))]].name
}

// misled returns an entity that a later result names and the first does not, or a guess.
func (s *scholar) misled(results string) string {
	first, rest, _ := strings.Cut(results, "\n")
	var named []string
	for _, k := range []kind{city, river} {
		for _, i := range s.corpus.of[k] {
			if name := s.corpus.entities[i].name; strings.Contains(rest, name) && !strings.Contains(first, name) {
				named = append(named, name)
			}
		}
	}
	if len(named) == 0 {
		return s.guess()
	}
	return named[s.rng.IntN(len(named))]
}
