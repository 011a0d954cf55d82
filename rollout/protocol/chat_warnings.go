package protocol

import (
	"errors"
	"strings"
)

// thoughtProbe is reasoning that no template holds, to find whether a template keeps it.
const thoughtProbe = "th0ught of n0 turn"

// Warnings says what the template does to earlier turns that a reader of its prompts may not expect. It renders
// conversations of which one continues the other, and compares them. tools are those that the episode may call.
func (c Chat) Warnings(tools []Tool) (out []string) {
	said := message("assistant", probe)
	setReasoning(said, thoughtProbe)
	first := []any{message("user", "a"), said}
	before, err := c.render(first, tools, false)
	after, failed := c.render(append(first, message("user", "b")), tools, true)
	switch end := strings.LastIndex(before, probe) + len(probe); {
	case err != nil || failed != nil: // such a conversation is refused
	case !strings.Contains(before, thoughtProbe):
		out = append(out, "writes no reasoning of earlier turns")
	case !strings.Contains(after, thoughtProbe):
		out = append(out, "drops the reasoning of earlier turns at a new turn of the user")
	case !strings.HasPrefix(after, before[:end]):
		out = append(out, "changes earlier text at a new turn of the user")
	}
	if len(orPython(tools)) == 0 {
		return out
	}
	if p := c.parts(); c.bound != nil && c.Format == "" && p.form != nil && p.sample == "" {
		out = append(out, "writes no calls, so that their form is a guess")
	}
	if c.parts().asUser {
		out = append(out, "writes no results of calls, so that they are turns of the user")
	}
	if c.parts().unread {
		out = append(out, "writes calls in a form that is not known, and not in that of rollout.tool_format")
	}
	if c.Rewrites(tools) {
		out = append(out, "changes earlier text when the results of calls follow, so that each turn is a row with a "+
			"whole prompt of its own (layout: turns)")
	}
	return out
}

// Rewrites reports whether the template writes earlier turns differently once the results of calls follow.
func (c Chat) Rewrites(tools []Tool) bool {
	c.Whole = false
	return errors.Is(c.CheckTools(tools), errRewrites)
}
