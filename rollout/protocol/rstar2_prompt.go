package protocol

import "strings"

// RStar2Prompt is RStar2 with the prompt that a published model needs: what to write in which tags, and the tools with
// their signatures.
//
// Source: rStar2-Agent §2.1 and Figure 3, of which the text says what the prompt holds. Departures: the words are ours.
type RStar2Prompt struct{ RStar2 }

// standardIO is Python's tool under the paper's name.
var standardIO = Tool{Name: ToolName, Parameters: Python.Parameters,
	Description: "Runs a Python program. Returns what it prints or, if it prints nothing, the value of its last " +
		"expression."}

// The fixed text of the prompt.
const (
	rstar2System = "Solve the problem step by step. First reason within <reason></reason>. Where a computation " +
		"helps, call a tool after your reasoning; its result follows, and you reason about it within " +
		"<reason></reason> again. Check results before you rely on them. At the end write the final answer once, " +
		"within <answer></answer>, with the number in \\boxed{}.\n\n# Tools\n\n" +
		"The signatures of the tools are within <tools></tools>:\n<tools>\n"
	rstar2SystemEnd = "\n</tools>\n\nA call is a JSON object with the tool's name and its arguments within " +
		"<tool_call></tool_call>:\n<tool_call>{\"name\": <name>, \"arguments\": <object of arguments>}</tool_call>" +
		EndOfTurn + "\n" + promptOpen
)

// Spec describes the protocol.
func (p RStar2Prompt) Spec() Spec {
	spec := p.RStar2.Spec()
	spec.Name = "rstar2_prompt"
	spec.Doc = "the protocol rstar2 with a system prompt that explains tags and tools, for published models"
	spec.Source = "rStar2-Agent §2.1"
	return spec
}

// Added lists the protocol's fixed strings.
func (p RStar2Prompt) Added() []string { return append(p.RStar2.Added(), rstar2Open(nil, "")) }

// rstar2Open renders everything before the problem.
func rstar2Open(tools []Tool, instruction string) string {
	var signatures []string
	for _, t := range orPython(tools) {
		if t.Name == Python.Name {
			t = standardIO
		}
		signatures = append(signatures, guard(t.Signature(), rstar2Marks))
	}
	if instruction != "" {
		instruction = guard(instruction, rstar2Marks) + "\n"
	}
	return systemOpen + instruction + rstar2System + strings.Join(signatures, "\n") + rstar2SystemEnd
}

// Context renders system prompt and problem at turn 0, and the results of calls at later turns.
func (p RStar2Prompt) Context(v View) string {
	if v.Turn > 0 {
		return p.RStar2.Context(v)
	}
	return rstar2Open(v.Tools, v.Instruction) + guard(v.Task, rstar2Marks) + promptEnd
}
