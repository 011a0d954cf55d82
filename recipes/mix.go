package recipes

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/env/mix"
)

// Mix is the name of the environment that consists of others.
const Mix = "mix"

// Part is one environment of a mix. Its fields apply as they apply to a recipe of that environment alone.
type Part struct {
	Name   string  `json:"name" required:"true" list:"parts" doc:"the environment"`
	Label  string  `json:"label,omitempty" optional:"true" pattern:"^[a-z0-9][a-z0-9._-]{0,31}$" doc:"names the part in the record and in results; absent = its name. Two parts of one environment need labels"`
	Weight float64 `json:"weight" default:"1" min:"0.001" max:"1000" doc:"its share of the prompts is its weight over the sum of all weights"`

	LevelShares map[string]float64 `json:"level_shares,omitempty" default:"{'2': 0.3, '3': 0.4, '4': 0.3}" min:"0" max:"1" keys:"2|3|4" only:"calc" doc:"share of each level (number of operands) among its training prompts"`
	Settings    env.Settings       `json:"settings,omitempty" only:"configured" doc:"its own settings, as environment.settings of that environment"`
}

// label returns what the record calls the part.
func (p Part) label() string { return cmp.Or(p.Label, p.Name) }

// partNames lists the environments that can be parts.
func partNames() []string {
	var names []string
	for _, d := range environments.All {
		if !d.Mixed && !d.Imported {
			names = append(names, d.Name)
		}
	}
	return names
}

// mixed returns the parts of a mix with their declarations.
func mixed(parts []Part) []mix.Part {
	out := make([]mix.Part, len(parts))
	for i, p := range parts {
		out[i] = mix.Part{Label: p.label(), Weight: p.Weight, Settings: p.Settings,
			Declaration: Environment{Name: p.Name, Settings: p.Settings}.Declaration(), LevelShares: p.LevelShares}
	}
	return out
}

// unfit reports whether the environment is a mix of parts that do not fit together, which a rule of its own says.
func (e Environment) unfit() bool {
	if !declared(e.Name).Mixed {
		return false
	}
	_, fault := mix.Combine(mixed(e.Parts))
	return fault != ""
}

// configured is an environment with its settings, and the place of the settings in the recipe.
type configured struct {
	declaration env.Declaration
	settings    env.Settings
	path        string
}

// configured lists the recipe's environment, or the parts of a mix.
func (e Environment) configured() []configured {
	if !declared(e.Name).Mixed {
		return []configured{{declared(e.Name), e.Settings, "environment.settings"}}
	}
	out := make([]configured, len(e.Parts))
	for i, p := range e.Parts {
		out[i] = configured{declared(p.Name), p.Settings, fmt.Sprintf("environment.parts[%d].settings", i)}
	}
	return out
}

// elementScope is the scope of an element of a list in a document: inside a part, the environment is the part's.
func (d *decoder) elementScope(element reflect.Type, n *yaml.Node) scope {
	s := d.scope
	if element == reflect.TypeFor[Part]() {
		s.environment = ""
		if at := lookup(n, "name"); at != nil && slices.Contains(partNames(), at.Value) {
			s.environment = at.Value
		}
	}
	return s
}

// elementScope is the scope of an element of a list in a recipe.
func (s scope) elementScope(v reflect.Value) scope {
	if part, ok := v.Interface().(Part); ok {
		s.environment = part.Name
	}
	return s
}

// declaration returns the declaration of the scope's environment, as far as the names of a mix's parts tell it.
func (s scope) declaration() env.Declaration {
	d := declared(s.environment)
	if !d.Mixed || len(s.parts) == 0 {
		return d
	}
	parts := make([]Part, len(s.parts))
	for i, name := range s.parts {
		parts[i] = Part{Name: name, Label: fmt.Sprint(i), Weight: 1}
	}
	if combined, fault := mix.Combine(mixed(parts)); fault == "" {
		return combined
	}
	return d
}

// partsOf reads the names of a mix's parts from a document.
func partsOf(top *yaml.Node) (names []string) {
	n := lookup(top, "environment", "parts")
	if n == nil || n.Kind != yaml.SequenceNode {
		return nil
	}
	for _, part := range n.Content {
		if name := lookup(part, "name"); name != nil {
			names = append(names, name.Value)
		}
	}
	return names
}

// elementSchema returns the schema of an element of a list. The environment of a part decides which fields it has.
func elementSchema(f *Field) object {
	s := f.schema()
	if f.typ != reflect.TypeFor[Part]() {
		return s
	}
	var rules []any
	for _, name := range partNames() {
		rules = append(rules, object{
			"if":   object{"required": []string{"name"}, "properties": object{"name": object{"const": name}}},
			"then": f.demands(name),
		})
	}
	s["allOf"] = rules
	return s
}

// partsFit checks that the parts of a mix make one environment, by opening it.
func partsFit(r *Recipe) string {
	if _, fault := mix.Combine(mixed(r.Environment.Parts)); fault != "" {
		return fault
	}
	return opens(r)
}

// unmeasured checks that each part of a mix has one of the held-out problems at least.
func (e Environment) unmeasured(problems int) string {
	parts := mixed(e.Parts)
	if len(parts) < 2 {
		return ""
	}
	for i, n := range mix.HeldOut(parts, problems) {
		if n == 0 {
			return fmt.Sprintf("part %s has no share of %d held-out problems: give it more weight, or the evaluation "+
				"more problems", parts[i].Label, problems)
		}
	}
	return ""
}

// partUndemonstrated checks that something demonstrates the tasks of each part of a mix.
func (e Environment) partUndemonstrated() string {
	for _, p := range mixed(e.Parts) {
		why := "nothing demonstrates its tasks"
		if of := p.Declaration.Undemonstrated; p.Declaration.Demonstrated && of != nil {
			why = of(p.Settings)
		} else if p.Declaration.Demonstrated {
			why = ""
		}
		if why != "" {
			return fmt.Sprintf("must be 0 because of part %s (%s), or warm_start.demonstrations must say what is "+
				"cloned", p.Label, why)
		}
	}
	return ""
}

// partsCall checks that each part of a mix that asks questions has one of its own tools.
func (o Rollout) partsCall(parts []mix.Part) string {
	for _, p := range parts {
		have := p.Declaration.AllTools()
		own := slices.ContainsFunc(o.ToolNames(), func(name string) bool { return slices.Contains(have, name) })
		if len(have) > 0 && len(o.MCP) == 0 && !own {
			return fmt.Sprintf("must name a tool of part %s: %s", p.Label, strings.Join(have, ", "))
		}
	}
	return ""
}
