package searchqa

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/words"
)

// Settings choose the corpus, the questions, and what the tools show. Zero values are the full-size world.
type Settings struct {
	Name      string   // of the environment in recipes
	Documents int      // of the corpus; 0 = 6,000
	Brief     bool     // documents hold the facts alone, in few words
	Train     []string // families of training questions; none = birth_river and author_birthplace
	Evaluate  []string // families of held-out questions; none = all with short answers
	Results   int      // results of a search at most; 0 = 10
	Snippet   int      // bytes of a result's text at most; 0 = 160
	Page      int      // tokens of a document that browse shows, or that a summary is made from; 0 = 6,000
	Summary   int      // tokens of a summary that browse shows in the place of a document; 0 = it shows the document
}

// What 003 §4.4 shows of a search and of a page.
const (
	paperResults = 10
	paperTokens  = 6000
)

const snippetBytes = 160

// fewestInSummary is the fewest tokens of a summary that a setting can allow.
const fewestInSummary = 8

// Environment is the library with its questions.
type Environment struct {
	settings        Settings
	corpus          *corpus
	train, evaluate [][]question // by family
}

// New makes the environment. It writes the documents; the first search makes the index.
func New(s Settings) (*Environment, error) {
	orElse := func(value *int, standard int) {
		if *value == 0 {
			*value = standard
		}
	}
	orElse(&s.Documents, fullSize)
	orElse(&s.Results, paperResults)
	orElse(&s.Snippet, snippetBytes)
	orElse(&s.Page, paperTokens)
	if len(s.Train) == 0 {
		s.Train = trained
	}
	if len(s.Evaluate) == 0 {
		s.Evaluate = slices.DeleteFunc(familyNames(), func(name string) bool { return slices.Contains(long, name) })
	}
	if err := s.validate(); err != nil {
		return nil, err
	}
	e := &Environment{settings: s, corpus: corpusOf(shape{s.Documents, s.Brief})}
	return e, e.split()
}

// validate names the setting that cannot be.
func (s Settings) validate() error {
	var errs []error
	within := func(name string, value, low, high int) {
		if value < low || value > high {
			errs = append(errs, fmt.Errorf("check search_qa settings: %s must be %d to %d, got %d", name, low, high,
				value))
		}
	}
	within("documents", s.Documents, fewestDocuments, mostDocuments)
	within("results", s.Results, 1, paperResults)
	within("snippet", s.Snippet, 16, 10_000)
	within("page_tokens", s.Page, 16, paperTokens)
	if s.Summary != 0 {
		within("summary_tokens", s.Summary, fewestInSummary, s.Page)
	}
	return errors.Join(append(errs, known("train", s.Train), known("evaluate", s.Evaluate))...)
}

// known checks the families that a setting names.
func known(setting string, names []string) error {
	for i, name := range names {
		if _, ok := familyNamed(name); !ok {
			return fmt.Errorf("check search_qa settings: %s: there is no family %q; there are %s", setting, name,
				strings.Join(familyNames(), ", "))
		}
		if slices.Index(names, name) < i {
			return fmt.Errorf("check search_qa settings: %s names family %s twice", setting, name)
		}
	}
	return nil
}

// Name returns the name in recipes.
func (e *Environment) Name() string { return e.settings.Name }

// Instruction is empty: the protocol says how to search, and the question says the rest.
func (*Environment) Instruction(env.Task) (string, error) { return "", nil }

// asked is an episode's state.
type asked struct {
	ID    string   `json:"id"`
	Golds []string `json:"golds"`
	Ended bool     `json:"ended,omitempty"`
}

// Reset asks the question.
func (*Environment) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	if err := ctx.Err(); err != nil {
		return nil, env.Observation{}, err
	}
	q, err := readTask(task)
	if err != nil {
		return nil, env.Observation{}, err
	}
	state, err := json.Marshal(asked{ID: task.ID, Golds: q.Golds})
	return state, env.Seen(q.Text), err
}

// Step takes the answer, which ends the episode. An answer without a word is invalid.
func (*Environment) Step(ctx context.Context, at env.State, action string) (env.State, env.Transition, error) {
	var none env.Transition
	if err := ctx.Err(); err != nil {
		return nil, none, err
	}
	a, err := readState(at)
	if err != nil {
		return nil, none, err
	}
	if a.Ended {
		return nil, none, fmt.Errorf("answer a question: %w", env.ErrEnded)
	}
	t := env.Transition{Done: true, Valid: words.Normalize(action) != "", Observation: env.Seen("wrong")}
	if t.Valid && words.Exact(action, a.Golds) {
		t.Success, t.Reward, t.Observation = true, 1, env.Seen("right")
	}
	a.Ended = true
	state, err := json.Marshal(a)
	return state, t, err
}

// Situation identifies the state. An episode has one action, the answer.
func (*Environment) Situation(at env.State) (string, error) {
	a, err := readState(at)
	return fmt.Sprintf("%s %t", a.ID, a.Ended), err
}

func readState(at env.State) (a asked, err error) {
	if err = env.Decode(at, &a); err != nil {
		return a, fmt.Errorf("read the state of a question: %w", err)
	}
	if a.ID == "" || len(a.Golds) == 0 {
		return a, errors.New("read the state of a question: id or golds are missing")
	}
	return a, nil
}
