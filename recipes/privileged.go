package recipes

import (
	"strings"

	"github.com/ropewalk/ropewalk/internal/secret"
)

// Privileged lists what the recipe has workers do with the rights of their user, with the fields that say it, as a
// person reads them: the programs that they start, and the secrets that they give to programs and servers.
func (r *Recipe) Privileged() (out []string) {
	for _, s := range r.Rollout.MCP {
		if len(s.Command) > 0 {
			out = append(out, "rollout.mcp "+s.Name+": "+strings.Join(s.Command, " "))
		}
	}
	of := func(name string, e Environment) {
		if d := declared(e.Name); d.Starts != nil {
			if program := d.Starts(e.Settings); program != "" {
				out = append(out, "environment "+name+": "+program)
			}
		}
	}
	of(r.Environment.Name, r.Environment)
	for _, p := range r.Environment.Parts {
		of(p.label(), Environment{Name: p.Name, Settings: p.Settings})
	}
	if f, ok := r.Function(); ok && f.Module != "" {
		out = append(out, strings.TrimSpace("reward: Python "+f.Module+" "+f.Path))
	}
	text, err := r.Canonical()
	if err != nil {
		return append(out, err.Error()) // such a recipe cannot be resolved
	}
	for _, reference := range secret.References(string(text)) {
		out = append(out, "the secret "+reference)
	}
	return out
}
