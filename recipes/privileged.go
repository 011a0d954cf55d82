package recipes

import (
	"strings"

	"github.com/ropewalk/ropewalk/env"
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
	out = append(out, r.Environment.Programs()...)
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

// Programs lists the programs that workers start for the environment or for the parts of a mix, as a person reads them.
func (e Environment) Programs() (out []string) {
	of := func(label, name string, s env.Settings) {
		if d := declared(name); d.Starts != nil {
			if program := d.Starts(s); program != "" {
				out = append(out, "environment "+label+": "+program)
			}
		}
	}
	of(e.Name, e.Name, e.Settings)
	for _, p := range e.Parts {
		of(p.label(), p.Name, p.Settings)
	}
	return out
}
