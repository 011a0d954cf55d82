package runs

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/recipes"
)

// partNamed finds the part of a mix that has a label, or that is of an environment. part is nil if the recipe is no
// mix, or has no such part.
func partNamed(recipe map[string]any, name string) (part map[string]any, err error) {
	if environmentOf(recipe) != recipes.Mix || name == "" || name == recipes.Mix {
		return nil, nil
	}
	parts, _ := section(recipe, "environment")["parts"].([]any)
	var of, labels []string
	for _, p := range parts {
		p, _ := p.(map[string]any)
		own, _ := p["name"].(string)
		label, _ := p["label"].(string)
		if label = cmp.Or(label, own); label == name {
			return p, nil
		}
		if own == name {
			part, of = p, append(of, label)
		}
		labels = append(labels, label)
	}
	if len(of) > 1 {
		return nil, badinput.Errorf("--environment: %d parts of the mix are of %s: name one by its label: %s", len(of),
			name, strings.Join(of, ", "))
	}
	if _, known := environments.Named(name); part == nil && !known {
		return nil, badinput.Errorf("--environment: the mix has no part %q, and there is no such environment; its "+
			"parts are %s", name, strings.Join(labels, ", "))
	}
	return part, nil
}

// alone returns the recipe of a mix with one part in the place of the mix: the part's own settings, and the protocol,
// the turns, the budgets of calls and the reward that all parts share. Its tools are those of the mix that it has.
func alone(recipe, part map[string]any) map[string]any {
	name, _ := part["name"].(string)
	d, _ := environments.Named(name)
	shared := maps.Clone(section(recipe, "rollout"))
	out := elsewhere(recipe, name)
	environment := map[string]any{"name": name}
	for _, field := range []string{"settings", "level_shares"} {
		if value, ok := part[field]; ok {
			environment[field] = value
		}
	}
	out["environment"] = environment
	for _, name := range []string{"reward", "layout"} {
		if value, ok := recipe[name]; ok {
			out[name] = value
		}
	}
	rollout := section(out, "rollout")
	for _, field := range []string{"protocol", "history", "max_turns", "max_calls", "max_turn_calls",
		"max_episode_tool_text_bytes"} {
		if value, ok := shared[field]; ok {
			rollout[field] = value
		}
	}
	if tools, ok := shared["tools"].([]any); ok && !d.Interactive {
		have := d.AllTools()
		rollout["tools"] = slices.DeleteFunc(slices.Clone(tools), func(tool any) bool {
			name, _ := tool.(string)
			return !slices.Contains(have, name)
		})
	}
	out["rollout"] = rollout
	return out
}
