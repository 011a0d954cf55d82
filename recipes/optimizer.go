package recipes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// declaration returns the declaration of the rule. A recipe with an unknown rule is refused before.
func (o Optimizer) declaration() optimizer.Declaration {
	return optimizer.Named(cmp.Or(o.Name, optimizer.AdamWName))
}

// Rule returns the rule by which a step changes the weights.
func (o Optimizer) Rule() (optimizer.Rule, error) {
	settings, err := o.Params.Into(o.declaration().Settings)
	if err != nil {
		return nil, fmt.Errorf("optimizer %s: %w", o.Name, err)
	}
	return settings.(optimizer.Rule), nil
}

// States returns how many numbers the rule keeps of each one that it trains.
func (o Optimizer) States() int { return len(o.declaration().States) }

// MarshalJSON writes the rule's settings among the others, and no name where the rule is AdamW. The key of a warm start
// is a digest of this form.
func (o Optimizer) MarshalJSON() ([]byte, error) {
	type plain Optimizer
	text, err := json.Marshal(plain(o))
	if err != nil {
		return nil, err
	}
	all := map[string]any{}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if o.declaration().Name == optimizer.AdamWName {
		delete(all, "name")
		maps.Copy(all, choice.Values(optimizer.AdamW{})) // a section that is absent has zeros
	}
	maps.Copy(all, o.Params)
	return json.Marshal(all)
}

// optimizers lists the rules as choices.
func optimizers() (out []choice.Choice) {
	for _, d := range optimizer.Declarations() {
		out = append(out, choice.Choice{Name: d.Name, Doc: d.Doc, Source: d.Source, Settings: d.Settings})
	}
	return out
}

// optimizerSlot is the slot of the rule in a section with an optimiser.
func optimizerSlot(section, doc string) method.Slot {
	s := method.Slot{Name: section + ".name", Doc: doc}
	for _, c := range optimizers() {
		s.Choices = append(s.Choices, method.Choice{Name: c.Name, Doc: c.Doc, Source: c.Source,
			Params: c.Params(optimizers())})
	}
	return s
}
