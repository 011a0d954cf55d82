package analysis

import (
	"cmp"
	"context"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/schema"
)

// Layout lays texts of a run's environment out for a person to read. It accepts any text, also of an environment that
// this version does not know. What it returns is not escaped.
type Layout struct {
	declared env.Declaration
	tokens   tokenizer.Codec            // nil where the record has none
	parts    map[string]env.Declaration // of a mix, by label
}

// Layout returns the layout of the run's environment.
func (v *Visible) Layout(ctx context.Context) (Layout, error) {
	var r struct {
		Environment struct {
			Name  string `json:"name"`
			Parts []struct {
				Name  string `json:"name"`
				Label string `json:"label"`
			} `json:"parts"`
		} `json:"environment"`
	}
	if err := v.Recipe(ctx, &r); err != nil {
		return Layout{}, err
	}
	out := Layout{parts: map[string]env.Declaration{}}
	out.declared, _ = environments.Named(r.Environment.Name)
	goal := out.declared.Goal != nil
	for _, p := range r.Environment.Parts {
		d, _ := environments.Named(p.Name)
		out.parts[cmp.Or(p.Label, p.Name)] = d
		goal = goal || d.Goal != nil
		out.declared.Interactive = d.Interactive // all parts are, or none
	}
	var err error
	if goal {
		out.tokens, err = v.Tokenizer(ctx)
	}
	return out, err
}

// Of returns the layout of a prompt's part, in a mix of environments; elsewhere the layout itself.
func (l Layout) Of(p schema.PromptRow) Layout {
	if p.Part != nil {
		if d, ok := l.parts[*p.Part]; ok {
			l.declared = d
		}
	}
	return l
}

// Text lays out the result of the named tool, or an observation ("").
func (l Layout) Text(tool, text string) string {
	lay := l.declared.Lay
	if lay == nil || text == "" {
		return text
	}
	return tried(func() string { return lay(tool, text) }, text)
}

// Task lays out what a policy was asked: the goal, and what the environment showed first.
func (l Layout) Task(p schema.PromptRow) string {
	out := l.Text("", p.Problem)
	if l.declared.Goal == nil || l.tokens == nil || l.tokens.Check(p.TokenIDs) != nil {
		return out
	}
	prompt := schema.Text(l.tokens.Decode(p.TokenIDs))
	if goal := tried(func() string { return l.declared.Goal(prompt) }, ""); goal != "" {
		out = goal + "\n\n" + out
	}
	return out
}

// Interactive reports whether each response of the run's environment is an action.
func (l Layout) Interactive() bool { return l.declared.Interactive }

// tried returns what f returns, or another text if f panics.
func tried(f func() string, other string) string {
	out := other
	if err := rescue.Do(func() error {
		out = f()
		return nil
	}); err != nil {
		return other
	}
	return out
}
