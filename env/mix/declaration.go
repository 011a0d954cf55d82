package mix

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Declaration declares the environment without its parts. Fields of a recipe that any part may need belong to a mix;
// Combine says what a mix of given parts is.
var Declaration = env.Declaration{
	Name: "mix", Doc: "several environments, drawn by weight", Mixed: true, Sandboxed: true, Demonstrated: true,
	Open: func(o env.Options) (env.Environment, error) {
		return nil, fmt.Errorf("a mix opens with its parts alone")
	},
}

// Part is one environment of a mix.
type Part struct {
	Label       string // names the part in the record, in states and in results
	Weight      float64
	Declaration env.Declaration
	Settings    env.Settings
	LevelShares map[string]float64
}

// Combine declares the mix of parts. fault says why they cannot share a policy; it is "" if they can.
func Combine(parts []Part) (d env.Declaration, fault string) {
	d = Declaration
	if fault = unfit(parts); fault != "" {
		return d, fault
	}
	first := parts[0].Declaration
	d.Interactive, d.Golds, d.Protocol = first.Interactive, first.Golds, first.Protocol
	d.Functions = first.Functions
	d.Sandboxed, d.Rewards = false, slices.Clone(first.Rewards)
	for _, p := range parts {
		of := p.Declaration
		d.Sandboxed = d.Sandboxed || of.Sandboxed
		d.Demonstrated = d.Demonstrated && of.Demonstrated
		if of.Protocol != d.Protocol {
			d.Protocol = ""
		}
		d.Rewards = slices.DeleteFunc(d.Rewards, func(name string) bool { return !slices.Contains(of.Rewards, name) })
		d.Tools = join(d.Tools, of.UsualTools())
		d.MoreTools = join(d.MoreTools, of.MoreTools)
	}
	d.MoreTools = slices.DeleteFunc(d.MoreTools, func(name string) bool { return slices.Contains(d.Tools, name) })
	if len(d.Rewards) == 0 {
		return d, "no reward scores all of them: " + each(parts, func(of env.Declaration) string {
			return strings.Join(of.Rewards, ", ")
		})
	}
	d.Strings = func() (out []string) {
		for _, p := range parts {
			if p.Declaration.Strings != nil {
				out = join(out, p.Declaration.Strings())
			}
			if p.Declaration.More != nil {
				out = join(out, p.Declaration.More(p.Settings))
			}
		}
		return out
	}
	d.Open = func(o env.Options) (env.Environment, error) { return open(parts, o) }
	return d, ""
}

// unfit says why parts cannot be mixed, whatever the rest of the recipe says.
func unfit(parts []Part) string {
	if len(parts) < 2 {
		return fmt.Sprintf("a mix has at least two parts, got %d", len(parts))
	}
	first, library := parts[0], ""
	for i, p := range parts {
		of := p.Declaration
		if slices.ContainsFunc(parts[:i], func(o Part) bool { return o.Label == p.Label }) {
			return fmt.Sprintf("two parts are called %s; give each a label of its own", p.Label)
		}
		switch {
		case of.Mixed:
			return fmt.Sprintf("part %s is a mix itself; name its parts here", p.Label)
		case of.Open == nil:
			return fmt.Sprintf("part %s supplies no tasks: its trajectories are imported", p.Label)
		case of.Interactive != first.Declaration.Interactive:
			return fmt.Sprintf("part %s %s, and part %s %s: one protocol cannot serve both", first.Label,
				kind(first.Declaration), p.Label, kind(of))
		case (of.Functions == nil) != (first.Declaration.Functions == nil):
			return fmt.Sprintf("parts %s and %s are answered differently: calls are the answer of one", first.Label,
				p.Label)
		case of.Golds != first.Declaration.Golds:
			return fmt.Sprintf("parts %s and %s compare answers differently: one has several right answers to a "+
				"question, compared by their words", first.Label, p.Label)
		}
		if reads(of) {
			if library != "" {
				return fmt.Sprintf("parts %s and %s both have documents, and the tool search reads those of one part",
					library, p.Label)
			}
			library = p.Label
		}
	}
	return ""
}

func kind(d env.Declaration) string {
	if d.Interactive {
		return "is played by actions"
	}
	return "asks questions"
}

// reads reports whether an environment has documents.
func reads(d env.Declaration) bool {
	return slices.Contains(d.AllTools(), "search") || slices.Contains(d.AllTools(), "browse")
}

// join appends the texts that are not there yet.
func join(all, more []string) []string {
	all = slices.Clone(all)
	for _, s := range more {
		if !slices.Contains(all, s) {
			all = append(all, s)
		}
	}
	return all
}

// each lists a text of each part, by label.
func each(parts []Part, text func(env.Declaration) string) string {
	out := make([]string, len(parts))
	for i, p := range parts {
		out[i] = p.Label + ": " + text(p.Declaration)
	}
	return strings.Join(out, "; ")
}

// Protocols lists the parts' own prompt formats by label, for messages.
func Protocols(parts []Part) string {
	return each(parts, func(of env.Declaration) string { return of.Protocol })
}
