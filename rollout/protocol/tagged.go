package protocol

import (
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// tagged is a protocol whose responses consist of tags: reasoning, then a call whose text is in the tag of a tool, or
// the answer. A response stops where a call closes; the results follow in the same turn of the chat. The instruction
// precedes the question in the user's turn, with a line for each tool.
//
// A tag calls the tool of its name, or the tool that has it as an alias. If the protocol has one tag for calls and the
// episode has one tool, the tag calls that tool, whatever its name: a text for a search engine or a program. A call
// that is not closed when the turn ends cannot be decoded; the answer to it opens a turn of the user.
type tagged struct {
	spec        Spec // without what follows from the fields below: see the method Spec
	instruction string
	think       string   // tag of the reasoning
	calls       []string // tags of calls
	result      string   // tag of results
	// before and after are what surrounds a result inside its tags.
	before, after string
}

const (
	answerName   = "answer"
	questionOpen = "\nQuestion: "
)

// Spec describes the protocol.
func (t tagged) Spec() Spec {
	s := t.spec
	s.Form = "it consists of <" + t.think + "> pairs and ends with one call or one answer"
	s.EndOfTurn, s.Tools, s.Summaries = EndOfTurn, true, true
	if t.think != "think" {
		s.Reasoning = t.think
	}
	s.Tags = slices.Concat([]string{t.think}, t.calls, []string{answerName})
	for _, c := range t.calls {
		s.Stops = append(s.Stops, "</"+c+">")
	}
	s.Marks = append(tagMarks(append(slices.Clone(s.Tags), t.result)...), boxOpen)
	if t.think != "think" {
		s.Marks = append(s.Marks, thinkOpen, thinkClose)
	}
	return s
}

// Added lists the prompt's beginning, the tags and the text of results.
func (t tagged) Added() []string {
	resultOpen, resultClose := t.resultTags()
	thinkOpen, thinkClose := "<"+t.think+">", "</"+t.think+">"
	added := []string{
		EndOfTurn, replyOpen, promptOpen, t.open(nil, ""), questionOpen,
		thinkOpen, thinkClose, thinkOpen + thinkClose, answerTag, answerTagClose, boxOpen, answerTag + boxOpen,
		"}" + answerTagClose,
		resultOpen, resultClose, "\n" + resultOpen, resultClose + "\n",
		"\n" + resultOpen + prefixDecode, "\n" + resultOpen + prefixTool, "\n" + resultOpen + noOutput,
		"\n" + promptOpen + resultOpen, resultClose + replyOpen,
		prefixDecode, prefixTool, noOutput, truncated, messageNotClosed, messageEmpty,
	}
	for _, c := range t.calls {
		added = append(added, "<"+c+">", "</"+c+">", thinkOpen+thinkClose+"<"+c+">")
	}
	added = append(added, pythonText...)
	return append(added, reasons...)
}

// resultTags returns what opens and what closes a result.
func (t tagged) resultTags() (opening, closing string) {
	return "<" + t.result + ">" + t.before, t.after + "</" + t.result + ">"
}

// open renders everything before the question.
func (t tagged) open(tools []Tool, instruction string) string {
	marks := t.Spec().Marks
	var b strings.Builder
	b.WriteString(promptOpen)
	if instruction != "" {
		b.WriteString(guard(instruction, marks) + "\n")
	}
	b.WriteString(t.instruction)
	for _, c := range t.calls {
		if tool, ok := t.tool(c, tools); ok {
			b.WriteString("\n<" + c + "> … </" + c + ">: " + guard(tool.Description, marks))
		}
	}
	b.WriteString(questionOpen)
	return b.String()
}

// tool returns the tool that a tag calls.
func (t tagged) tool(tag string, tools []Tool) (Tool, bool) {
	tools = orPython(tools)
	if tool, ok := find(tools, tag); ok {
		return tool, true
	}
	if len(t.calls) == 1 && len(tools) == 1 {
		return tools[0], true
	}
	i := slices.IndexFunc(tools, func(tool Tool) bool { return slices.Contains(tool.Aliases, tag) })
	if i < 0 {
		return Tool{}, false
	}
	return tools[i], true
}

// Context renders the prompt at turn 0 and the results of calls at later turns.
func (t tagged) Context(v View) string {
	if v.Turn == 0 {
		return t.open(v.Tools, v.Instruction) + guard(v.Task, t.Spec().Marks) + replyOpen
	}
	opening, closing := t.resultTags()
	last := v.Last()
	results := opening + strings.Join(last.Bodies, closing+"\n"+opening) + closing
	if strings.HasSuffix(last.Response, EndOfTurn) {
		return "\n" + promptOpen + results + replyOpen
	}
	return "\n" + results + "\n"
}

// Parse reads reasoning, calls and answer. Tags inside a closed pair are its content.
func (t tagged) Parse(response string, tools []Tool) Parsed {
	s := t.Spec()
	text, ended := strings.CutSuffix(response, EndOfTurn)
	blocks := reward.Blocks(text, s.Tags...)
	var got Parsed
	if i := slices.IndexFunc(blocks, func(b reward.Block) bool { return b.Tag == t.think }); i >= 0 {
		got.Reasoning = blocks[i].Content
	}
	end, spoken := 0, s.Spoken(text)
	for _, b := range reward.Blocks(spoken, s.Tags[1:]...) {
		end = b.End
		switch b.Tag {
		case answerName:
			got.AnswerTags++
			got.Answer, got.HasAnswer = t.answer(b.Content)
		default:
			got.Calls = append(got.Calls, t.call(b.Tag, b.Content, tools))
		}
	}
	moves := got.AnswerTags + len(got.Calls)
	got.WellFormed = s.Ends(response) && moves == 1 && blocks[len(blocks)-1].Tag != t.think &&
		reward.Wrapped(text, s.Tags...)
	if !ended {
		got.OpenCalls = t.countBegunCalls(spoken[end:])
		return got
	}
	for _, c := range t.calls {
		if _, inside, found := strings.Cut(spoken[end:], "<"+c+">"); found {
			got.Calls = append(got.Calls, refuse(inside, "", env.CallDecodeError, messageNotClosed))
			break
		}
	}
	return got
}

// countBegunCalls counts the call, one or none, that the text after the last closed block has begun. A tag inside the
// block that the text begins with is part of its content.
func (t tagged) countBegunCalls(text string) int {
	first, at := "", len(text)
	for _, tag := range t.Spec().Tags {
		if i := strings.Index(text, "<"+tag+">"); i >= 0 && i < at {
			first, at = tag, i
		}
	}
	if slices.Contains(t.calls, first) {
		return 1
	}
	return 0
}

// answer reads the content of an answer pair: its last box, or the text where answers have no box.
func (t tagged) answer(content string) (string, bool) {
	answer, boxed := reward.LastBoxed(content)
	if boxed || t.spec.Answer == AnswerBoxInTags {
		return answer, boxed
	}
	return strings.TrimSpace(content), true
}

func (t tagged) call(tag, content string, tools []Tool) env.ToolCall {
	content = strings.TrimSpace(content)
	tool, ok := t.tool(tag, tools)
	if !ok {
		return refuse(content, tag, env.CallUnknownTool, messageUnknown+quoted(tag))
	}
	return bindText(tool, content)
}

// Body renders the result of a call.
func (t tagged) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, t.Spec().Marks)
}

// Write writes a call or an answer, after the thought in its tags.
func (t tagged) Write(m env.Move) (string, bool) {
	if m.Action != "" {
		return "", false
	}
	response := "<" + t.think + ">" + m.Thought + "</" + t.think + ">"
	if m.IsCall() {
		tool, content, ok := textOf(m)
		tag := t.calls[0]
		if len(t.calls) > 1 {
			tag = tool
		}
		if !ok || !slices.Contains(t.calls, tag) {
			return "", false
		}
		response += "<" + tag + ">" + content
		if m.Broken {
			return written(t, m, response+EndOfTurn)
		}
		return written(t, m, response+"</"+tag+">")
	}
	answer := m.Answer
	if t.spec.Answer == AnswerBoxInTags {
		answer = boxOpen + answer + "}"
	}
	return written(t, m, response+answerTag+answer+answerTagClose+EndOfTurn)
}
