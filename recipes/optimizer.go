package recipes

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"

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
	all := map[string]any{}
	// The rule's own zeros come first: a section that is absent has them.
	for _, part := range []any{reflect.Zero(reflect.TypeOf(o.declaration().Settings)).Interface(), plain(o)} {
		text, err := json.Marshal(part)
		if err == nil {
			err = json.Unmarshal(text, &all)
		}
		if err != nil {
			return nil, err
		}
	}
	if o.declaration().Name == optimizer.AdamWName {
		delete(all, "name")
	}
	maps.Copy(all, o.Params)
	return json.Marshal(all)
}
