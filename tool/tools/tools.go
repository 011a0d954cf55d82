// Package tools lists the tools that recipes can name. A new tool is one file with a Declaration and its test, plus one
// line in All. Recipes, their schema and the reference page read the list.
package tools

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/mcp"
)

// Declaration tells the rest of the program everything that it needs to know about a tool.
type Declaration struct {
	tool.Spec // of every tool that Open makes, except that Open may make a stateful one
	// Reads means that the tool reads the documents of an environment (Host.Library).
	Reads bool
	// Open makes the tool for the calls of one stage execution. It is cheap: a tool that connects to a server keeps its
	// connections outside, and opens them when a call needs one.
	Open func(h Host) (tool.Tool, error)
}

// Host is what a worker and a recipe offer to tools.
type Host struct {
	Sandbox sandbox.Executor
	Limits  sandbox.Limits // of one call in the sandbox
	// Notebooks holds the interpreters of episodes; nil: each program runs by itself.
	Notebooks *session.Pool
	AtOnce    int // interpreters that run a cell at the same time
	// ExactCarets puts a traceback's carets under the code that they mean also in a program's last line, if that line
	// has no end: Python 3.11 puts them a column too far to the right there.
	ExactCarets bool
	// Library holds the documents of the recipe's environment; nil if it has none.
	Library env.Library
	// Summaries has a model sum up what browse shows; nil: browse shows documents themselves.
	Summaries Summariser
	// Servers holds the worker's sessions with MCP servers; nil: it reaches none.
	Servers *mcp.Pool
	// Encode and Decode are the policy's tokenizer, which measures documents; nil: a token is a word.
	Encode func(text string) []int32
	Decode func(tokens []int32) string
}

// All lists the tools.
var All = []Declaration{
	Python,
	Search,
	Browse,
}

// Named returns the tool with that name.
func Named(name string) (Declaration, error) {
	i := slices.IndexFunc(All, func(d Declaration) bool { return d.Name == name })
	if i < 0 {
		return Declaration{}, fmt.Errorf("there is no tool %q; there are %s", name, strings.Join(Names(), ", "))
	}
	return All[i], nil
}

// Names lists the names of the tools.
func Names() []string {
	out := make([]string, len(All))
	for i, d := range All {
		out[i] = d.Name
	}
	return out
}

// Select returns the tools with these names, in their order.
func Select(names ...string) ([]Declaration, error) {
	out := make([]Declaration, len(names))
	for i, name := range names {
		d, err := Named(name)
		if err != nil {
			return nil, err
		}
		out[i] = d
	}
	return out, nil
}

// Open makes the tools for a host.
func Open(of []Declaration, h Host) (tool.Toolbox, error) {
	box := make(tool.Toolbox, len(of))
	for i, d := range of {
		t, err := d.Open(h)
		if err != nil {
			return nil, fmt.Errorf("open tool %s: %w", d.Name, err)
		}
		box[i] = t
	}
	return box, nil
}

// Specs describes the tools.
func Specs(of []Declaration) []tool.Spec {
	out := make([]tool.Spec, len(of))
	for i, d := range of {
		out[i] = d.Spec
	}
	return out
}
