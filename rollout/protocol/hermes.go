package protocol

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// Hermes is the protocol of native tool calls that Hermes and Qwen models were trained with. A system prompt lists the
// tools as JSON schemas, a call is a JSON object in <tool_call> tags, and the final answer is in a box.
//
// Source: the chat templates of Qwen2.5 and Qwen3 for prompts and calls; SPEAR §3.2 for the hints after a program that
// printed nothing or reported errors. Departures: SPEAR puts its imports before each program; here a program runs as it
// is. A program that prints nothing shows the value of its last expression, as RStar2's tool does, so that the hint
// follows only if there is none. A program that failed has no hint about empty output.
type Hermes struct{}

// The fixed text of prompts and calls.
const (
	hermesInstruction = `Please reason step by step, and put your final answer within \boxed{}.`
	hermesTools       = "\n\n# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are " +
		"provided with function signatures within <tools></tools> XML tags:\n<tools>\n"
	hermesToolsEnd = "\n</tools>\n\nFor each function call, return a json object with function name and arguments " +
		"within <tool_call></tool_call> XML tags:\n<tool_call>\n{\"name\": <function-name>, \"arguments\": " +
		"<args-json-object>}\n</tool_call>"

	systemOpen = "<|im_start|>system\n"
	// replyOpen ends a turn of the user and begins the policy's.
	replyOpen = EndOfTurn + "\n<|im_start|>assistant\n"

	hermesCallOpen  = callTag + "\n" + `{"name": "`
	hermesArguments = `", "arguments": `
	hermesCallClose = "}\n" + callTagClose
	// hermesCode begins a call of the Python tool, and hermesCodeClose ends it.
	hermesCodeOpen  = hermesCallOpen + "python" + hermesArguments + `{"code": "`
	hermesCodeClose = `"}` + hermesCallClose

	hermesTurnEnd = "\n</tool_response>" + replyOpen

	// HintEmpty and HintErrors are SPEAR's hints.
	HintEmpty  = "Empty stdout! You might forget to print the answer."
	HintErrors = "Errors occurred! Check your code."
)

// Spec describes the protocol.
func (Hermes) Spec() Spec {
	return Spec{
		Name: "hermes", Doc: "JSON calls of the tools that a system prompt lists, and a boxed answer",
		Source: "chat templates of Qwen2.5 and Qwen3; SPEAR §3.2",
		Form: "it ends its turn and holds either closed <tool_call> blocks with no text after the first of them, or " +
			"no call and a box",
		EndOfTurn: EndOfTurn, Tags: []string{"tool_call"}, Answer: AnswerBox, Tools: true, Summaries: true,
		Marks: append(tagMarks("tools", "tool_call", "tool_response", "think"), boxOpen),
	}
}

// Added lists the fixed strings of prompts, calls and tool responses.
func (Hermes) Added() []string {
	return slices.Concat([]string{
		EndOfTurn, replyOpen, hermesOpen(nil, ""), systemOpen, promptOpen, callTag, callTagClose,
		hermesCallOpen, hermesArguments, hermesCallClose, hermesCodeOpen, hermesCodeClose,
		thinkOpen, thinkClose, boxOpen,
		turnOpen, hermesTurnEnd, turnBetween, turnOpen + HintEmpty, turnOpen + prefixDecode, turnOpen + prefixTool,
		HintEmpty, "\n" + HintErrors, prefixDecode, prefixTool, truncated,
	}, pythonText, reasons, messages)
}

// hermesOpen renders everything before the task: the system prompt and the beginning of the user's turn.
func hermesOpen(tools []Tool, instruction string) string {
	marks := Hermes{}.Spec().Marks
	var b strings.Builder
	b.WriteString(systemOpen)
	if instruction != "" {
		b.WriteString(guard(instruction, marks) + "\n")
	}
	b.WriteString(hermesInstruction)
	if tools = orPython(tools); len(tools) > 0 {
		signatures := make([]string, len(tools))
		for i, t := range tools {
			signatures[i] = guard(t.Signature(), marks)
		}
		b.WriteString(hermesTools + strings.Join(signatures, "\n") + hermesToolsEnd)
	}
	b.WriteString(EndOfTurn + "\n" + promptOpen)
	return b.String()
}

// Context renders system prompt and task at turn 0, and the results of calls at later turns.
func (p Hermes) Context(v View) string {
	if v.Turn == 0 {
		return hermesOpen(v.Tools, v.Instruction) + guard(v.Task, p.Spec().Marks) + replyOpen
	}
	return turnOpen + strings.Join(v.Last().Bodies, turnBetween) + hermesTurnEnd
}

// Parse reads calls and the box. The box counts only outside calls.
func (p Hermes) Parse(response string, tools []Tool) Parsed {
	response, ended := strings.CutSuffix(response, EndOfTurn)
	text := p.Spec().reason(response)
	tools = orPython(tools)
	blocks, parts := between(text.rest, callTag, callTagClose)
	got := Parsed{OpenCalls: begun(parts, callTag), Reasoning: text.thought(parts[0])}
	for _, block := range blocks {
		got.Calls = append(got.Calls, hermesCall(block, tools))
	}
	outside := strings.Join(parts, "")
	got.AnswerTags = boxes(outside)
	got.Answer, got.HasAnswer = reward.LastBoxed(outside)
	tagged := strings.Contains(outside, callTag) || strings.Contains(outside, callTagClose)
	if len(got.Calls) > 0 {
		got.WellFormed = ended && !tagged && strings.TrimSpace(strings.Join(parts[1:], "")) == ""
	} else {
		got.WellFormed = ended && !tagged && got.HasAnswer
	}
	return got
}

func hermesCall(block string, tools []Tool) env.ToolCall {
	c := parseCall(strings.TrimSpace(block), func(name string) (Tool, bool) { return find(tools, name) })
	c.Code = unfence(c.Code)
	return c
}

// Body renders the result of a call, with SPEAR's hints after a program.
func (p Hermes) Body(l Limit, call env.ToolCall, r *Result) string {
	marks := p.Spec().Marks
	if call.Error != "" || r == nil || call.Code == "" {
		return plainBody(l, call, r, marks)
	}
	output, errors := l.share(clean(r.Output), clean(r.Errors))
	if errors == "" && r.Failed {
		errors = prefixTool + r.Reason
	}
	switch {
	case errors != "":
		output = lines(output, errors+"\n"+HintErrors)
	case output == "":
		output = HintEmpty
	}
	return guard(output, marks)
}

// Write writes a call or a boxed answer.
func (p Hermes) Write(m env.Move) (string, bool) {
	if m.Action != "" {
		return "", false
	}
	response := m.Thought
	switch name, raw := arguments(m); {
	case m.Tool != "" && m.Broken:
		response += hermesCallOpen + escape(name) + hermesArguments + cutShort(raw) + "\n" + callTagClose
	case m.Broken:
		response += hermesCodeOpen + escape(m.Code) + "\n" + callTagClose
	case m.IsCall():
		response += hermesCallOpen + escape(name) + hermesArguments + raw + hermesCallClose
	default:
		response += boxOpen + m.Answer + "}"
	}
	return written(p, m, response+EndOfTurn)
}
