package resample

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Rules choose which groups and rows of a step enter the update. They run before the filters, in the order of their
// list.

// Rule is what a resampling rule states about itself. The file of the rule holds it.
type Rule struct {
	// Choice holds name, source and parameters. Its Settings implement Linker and hold the defaults of the rule's
	// parameters. A rule without parameters is true or false in a recipe, one with parameters is a section that may be
	// absent.
	choice.Choice
	Excludes []Exclusion // the rules that a recipe cannot combine with it
	// Brief describes the settings in a few words for the table of methods; nil = the rule's name.
	Brief func(settings any) string
}

// Exclusion names a rule that cannot be combined with another one, and says why.
type Exclusion struct{ Rule, Why string }

// Linker makes the link of a chain out of a rule's settings.
type Linker interface {
	// Link returns the link for a step that was sampled in that way.
	Link(s Sampling) Link
}

// Sampling says how a step was sampled, as far as rules need to know.
type Sampling struct {
	Groups int  // groups of one batch
	Step   int  // counted from 0
	Rounds bool // dynamic sampling has left the groups of equal rewards that it wants
}

// Rules lists the rules that recipes can name, in the order of the chain. A new rule is one more line here.
func Rules() []Rule { return slices.Clone(rules) }

var rules = []Rule{
	dynamic,
	rejectEqual,
	lowVariance,
	vspo,
	roc,
}

// Links makes the links of the rules that a recipe switches on. A parameter is true, or points to the settings of its
// rule. Other values make a link whose Validate reports them.
func Links(params choice.Params, s Sampling) []Link {
	s.Rounds = choice.Section[DynamicSampling](params, dynamic.Name) != nil
	var out []Link
	for _, r := range rules {
		settings, on, err := r.On(params)
		if !on {
			continue
		}
		if l, ok := settings.(Linker); err == nil && ok {
			out = append(out, l.Link(s))
			continue
		}
		out = append(out, faulty{r, err})
	}
	return out
}

// faulty is the link of a rule whose settings are not those that it declares.
type faulty struct {
	rule Rule
	err  error
}

// Validate reports the settings.
func (f faulty) Validate() error {
	if f.err != nil {
		return fmt.Errorf("resample.%s: %w", f.rule.Name, f.err)
	}
	return fmt.Errorf("resample.%s: its settings %T make no link", f.rule.Name, f.rule.Settings)
}

func (f faulty) name() string { return f.rule.Name }

func (faulty) draws() bool { return false }

func (faulty) apply(*step) {}

// Describe says in a few words how a recipe uses the rule; "" = it does not.
func (r Rule) Describe(params choice.Params) string {
	settings, on, err := r.On(params)
	switch {
	case !on || err != nil:
		return ""
	case r.Brief == nil:
		return r.Name
	}
	return r.Brief(settings)
}
