package jinja

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Template is a parsed template. It is immutable and safe for concurrent use.
type Template struct{ body []statement }

// Parse reads a template.
func Parse(text string) (parsed *Template, err error) {
	defer explain(&err)
	if len(text) > mostTemplate {
		return nil, fmt.Errorf("chat template: it has more than %d bytes", mostTemplate)
	}
	p := &parser{tokens: lex(text)}
	body, _ := p.body()
	return &Template{body}, nil
}

// Render renders the template with the values of its names. now is the time that strftime_now writes; a template that
// asks for it while it is zero finds no such name.
func (t *Template) Render(values *Dict, now time.Time) (text string, err error) {
	defer explain(&err)
	r := &renderer{out: &strings.Builder{}, now: now}
	s := &scope{names: map[string]any{}}
	for _, k := range values.keys {
		s.names[k.(string)] = values.values[k]
	}
	if err := r.run(t.body, s); err != nil {
		return "", fmt.Errorf("chat template: %w", err)
	}
	return r.out.String(), nil
}

// renderer is one rendering.
type renderer struct {
	out *strings.Builder
	now time.Time
	budget
}

// scope holds the names of a block. Names of outer blocks can be read.
type scope struct {
	names map[string]any
	outer *scope
}

func (s *scope) inner() *scope { return &scope{names: map[string]any{}, outer: s} }

func (s *scope) find(name string) (any, bool) {
	for ; s != nil; s = s.outer {
		if v, ok := s.names[name]; ok {
			return v, true
		}
	}
	return nil, false
}

// write appends to the output.
func (r *renderer) write(text string) {
	r.spend(len(text), 1)
	r.out.WriteString(text)
}

// value evaluates an expression.
func (r *renderer) value(e expression, s *scope) any { return unmarked(r.marked(e, s)) }

// marked is value that says whether a text is marked as safe.
func (r *renderer) marked(e expression, s *scope) any {
	r.visit(1)
	line := r.line
	v := e.value(r, s)
	r.line = line
	return v
}

func (r *renderer) run(body []statement, s *scope) (leaves error) {
	for _, n := range body {
		r.visit(1)
		if leaves = n.run(r, s); leaves != nil {
			return leaves
		}
	}
	return nil
}

// capture renders statements to a text of their own.
func (r *renderer) capture(body []statement, s *scope) (text string, leaves error) {
	outer := r.out
	r.out = &strings.Builder{}
	leaves = r.run(body, s)
	text, r.out = r.out.String(), outer
	return text, leaves
}

// errBreak and errContinue leave the body of a loop.
var (
	errBreak    = errors.New("break is not in a loop")
	errContinue = errors.New("continue is not in a loop")
)
