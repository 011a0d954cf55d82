package analysis

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Part is a named text of a tool call, or of what an action led to.
type Part struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

// Call is a tool call and its result, as readers show it.
type Call struct {
	Name   string `json:"name"`
	Status string `json:"status"`
	Exit   int32  `json:"exit"`
	Parts  []Part `json:"parts"` // code, stdin, stdout, …
}

// Call lays a tool call out.
func (l Layout) Call(c schema.ToolCallRow) Call {
	given, answer, broken := c.Arguments, "", ""
	if c.Code != "" || given == "{}" {
		given = ""
	}
	if c.Stdout == "" && c.Stderr == "" && c.Value == "" {
		answer = c.Response
	}
	if c.Excluded != nil {
		broken = *c.Excluded
	}
	return Call{Name: cmp.Or(c.Name, "(not a valid call)"), Status: cmp.Or(c.Status, "no verdict"), Exit: c.ExitCode,
		Parts: filled(Part{"given", given}, Part{"code", c.Code}, Part{"stdin", c.Stdin},
			Part{"stdout", l.Text(c.Name, c.Stdout)}, Part{"stderr", c.Stderr}, Part{"value", c.Value},
			Part{"answer", answer}, Part{"broken", broken})}
}

// Outcome is the call's status and exit code.
func (c Call) Outcome() string {
	if c.Exit == 0 {
		return c.Status
	}
	return fmt.Sprintf("%s, exit code %d", c.Status, c.Exit)
}

// Move lays out an action and what it led to.
func (l Layout) Move(x schema.TransitionRow) []Part {
	return filled(Part{"action", x.Action}, Part{"led to", verdictOf(x)}, Part{"seen", l.Text("", x.Observation)})
}

func filled(parts ...Part) []Part {
	return slices.DeleteFunc(parts, func(p Part) bool { return p.Text == "" })
}

// CallsOf returns the calls of a turn.
func (e Episode) CallsOf(turn int32) []schema.ToolCallRow {
	return slices.DeleteFunc(slices.Clone(e.Calls), func(c schema.ToolCallRow) bool { return c.Turn != turn })
}

// MovesOf returns what the actions of a turn led to.
func (e Episode) MovesOf(turn int32) []schema.TransitionRow {
	return slices.DeleteFunc(slices.Clone(e.Transitions), func(x schema.TransitionRow) bool { return x.Turn != turn })
}

// verdictOf says in a few words what an action led to.
func verdictOf(x schema.TransitionRow) string {
	if x.Excluded != nil {
		return *x.Excluded
	}
	verdict := fmt.Sprintf("reward %.4g", x.Reward)
	switch {
	case !x.WellFormed:
		verdict += ", not in the protocol's form"
	case !x.Valid:
		verdict += ", not a known action"
	}
	switch {
	case x.Success:
		verdict += ", solved"
	case x.Done:
		verdict += ", over"
	}
	return verdict
}
