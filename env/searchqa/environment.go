package searchqa

import (
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
	env.Questions
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
	e := &Environment{settings: s, corpus: corpusOf(shape{s.Documents, s.Brief}),
		Questions: env.Questions{Gold: goldsOf, Mark: mark}}
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

// goldsOf reads the golds of a task. The protocol says how to search, and the question says the rest.
func goldsOf(task env.Task) (string, error) {
	q, err := readTask(task)
	return env.JoinGolds(q.Golds), err
}

// mark compares an answer with the golds by its words. An answer without a word is invalid.
func mark(answer, golds string) (valid, right bool) {
	valid = words.Normalize(answer) != ""
	return valid, valid && words.Exact(answer, env.SplitGolds(golds))
}
