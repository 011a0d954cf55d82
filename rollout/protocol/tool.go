package protocol

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/toolcall"
	"github.com/ropewalk/ropewalk/sandbox"
)

// Tool is what a prompt says about a tool, and what a parser needs to know of it. Its texts may come from a server of
// unknown origin; a protocol renders them like any other text from outside.
type Tool struct {
	Name        string
	Aliases     []string // further names, which tags may have
	Description string
	// Parameters is the JSON schema of the arguments: an object. nil is the schema of a tool without arguments.
	Parameters json.RawMessage
}

// Python is the tool that runs a program in the sandbox. It is the only tool of an episode that names none.
var Python = Tool{
	Name:        "python",
	Description: "Runs a Python program and returns what it prints.",
	Parameters: json.RawMessage(`{"type": "object", "properties": {"code": {"type": "string", "description": ` +
		`"the program"}, "input": {"type": "string", "description": "its standard input"}}, "required": ["code"]}`),
}

// orPython returns the tools of an episode: Python alone if tools is nil. Python's own description replaces that of a
// tool with its name, because the prompt with Python's is one token.
func orPython(tools []Tool) []Tool {
	if tools == nil {
		return []Tool{Python}
	}
	if i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == Python.Name }); i >= 0 {
		tools = slices.Clone(tools)
		tools[i] = Python
	}
	return tools
}

// find returns the tool with that name.
func find(tools []Tool, name string) (Tool, bool) {
	i := slices.IndexFunc(tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}

// textArgument returns the name of the argument that takes the text of a call in tags: the first required argument, or
// the only argument. It returns "" if there is no such argument.
func (t Tool) textArgument() string {
	var schema struct {
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
	}
	if json.Unmarshal(t.Parameters, &schema) != nil {
		return ""
	}
	if len(schema.Required) > 0 {
		return schema.Required[0]
	}
	if len(schema.Properties) == 1 {
		for name := range schema.Properties {
			return name
		}
	}
	return ""
}

// Signature renders a tool as one line of JSON, in the form that chat templates list tools.
func (t Tool) Signature() string {
	parameters := t.Parameters
	if !json.Valid(parameters) {
		parameters = json.RawMessage(`{"type": "object", "properties": {}}`)
	}
	return `{"type": "function", "function": {"name": ` + quoted(t.Name) + `, "description": ` + quoted(t.Description) +
		`, "parameters": ` + lineEnds.Replace(string(parameters)) + `}}`
}

// quoted returns s as a JSON string.
func quoted(s string) string { return toolcall.Quote(s) }

// lineEnds replaces the line ends of valid JSON by spaces. Strings hold none.
var lineEnds = strings.NewReplacer("\n", " ", "\r", " ", "\t", " ")

// Result is what a call that ran gave.
type Result struct {
	// Output is what the tool returned. For a program it is what the program printed or, if it printed nothing, the
	// value of its last expression.
	Output string
	Errors string // what the tool reported as errors; of a program, stderr
	Failed bool
	Reason string // why the call failed, in one word; "" if Errors says it
}

// Ran returns the result of a program, or nil for nil.
func Ran(r *sandbox.Result) *Result {
	if r == nil {
		return nil
	}
	out := &Result{Output: cmp.Or(clean(r.Stdout), clean(r.Value)), Errors: clean(r.Stderr), Failed: r.Status.Failed()}
	if out.Failed {
		out.Reason = reason(r.Status)
	}
	return out
}

// bind makes the call of a tool from its arguments. A program becomes the call's code; the arguments of another tool
// are for that tool to check.
func bind(t Tool, name string, raw json.RawMessage) env.ToolCall {
	if t.Name == Python.Name {
		return parseArguments(name, raw)
	}
	if _, ok := object(raw); !ok {
		return refuse(string(raw), name, env.CallBadArgument, messageNotObject)
	}
	return env.ToolCall{Name: name, Arguments: string(raw)}
}

// bindText makes the call of a tool whose only argument is a text. A program may be in a fence.
func bindText(t Tool, text string) env.ToolCall {
	argument := t.textArgument()
	if argument == "" {
		return refuse(text, t.Name, env.CallBadArgument, messageNoText+quoted(t.Name))
	}
	if t.Name == Python.Name {
		text = unfence(text)
	}
	raw := json.RawMessage("{" + quoted(argument) + ": " + quoted(text) + "}")
	if strings.TrimSpace(text) == "" {
		return refuse(string(raw), t.Name, env.CallBadArgument, messageEmpty)
	}
	return bind(t, t.Name, raw)
}

var fenced = regexp.MustCompile("(?s)^```(?:python|py)?\n(.*)```$")

// unfence removes a fence around a program, as SPEAR's and ARPO's Python tools do.
func unfence(code string) string {
	if m := fenced.FindStringSubmatch(strings.TrimSpace(code)); m != nil {
		return strings.TrimSuffix(m[1], "\n")
	}
	return code
}

// arguments returns the arguments of a scripted call as JSON.
func arguments(m env.Move) (name, raw string) {
	if m.Tool == "" {
		return Python.Name, `{"code": ` + quoted(m.Code) + `}`
	}
	return m.Tool, m.Arguments
}

// cutShort returns the JSON object of a call that is cut short, so that it does not decode.
func cutShort(arguments string) string { return strings.TrimSuffix(strings.TrimSpace(arguments), "}") }

// textOf returns the only argument of a scripted call as text. ok is false if there are several, or if it is no text.
func textOf(m env.Move) (tool, only string, ok bool) {
	if m.Tool == "" {
		return Python.Name, m.Code, true
	}
	fields, ok := object(bytes.TrimSpace([]byte(m.Arguments)))
	if !ok || len(fields) != 1 {
		return m.Tool, "", false
	}
	for _, raw := range fields {
		only, ok = text(raw)
	}
	return m.Tool, only, ok
}
