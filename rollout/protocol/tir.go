package protocol

import (
	"regexp"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// TIR is tool-integrated reasoning: programs in ```python blocks, what they print in ```output blocks, and the final
// answer in a box. A response stops where it opens an output block; the tool fills the block, and the same turn of the
// chat continues.
//
// Source: ToRA (Gou et al. 2024) and the prompt of Qwen2.5-Math. Departures: ARLArena's form of it returns the result
// as a line of text in a separate turn, cuts stderr and stdout to 512 characters each, and ends the episode at a box
// that a program prints. Here a box counts only if the policy wrote it, and Limit cuts. A response that ends its turn
// after a block and without a box still runs the block; its output is then a turn of the user.
type TIR struct{}

// The fixed text.
const (
	tirOpen = systemOpen + `Please integrate natural language reasoning with programs to solve the problem, and put ` +
		`your final answer within \boxed{}. Write a program in a python block and open an output block to run it.`
	tirUser = EndOfTurn + "\n" + promptOpen

	fence       = "```"
	fencePython = fence + "python\n"
	fencePy     = fence + "py\n"
	fenceClose  = "\n" + fence + "\n"
	fenceOutput = fence + "output"

	tirTurnOpen = "\n" + promptOpen + fenceOutput + "\n"
	tirTurnEnd  = "\n" + fence + replyOpen
)

// Spec describes the protocol.
func (TIR) Spec() Spec {
	return Spec{
		Name: "tir", Doc: "programs in python blocks, their output in output blocks, and a boxed answer",
		Source: "ToRA; prompt of Qwen2.5-Math",
		Form: "it either stops at the output block that follows its only python block, or ends its turn with a box " +
			"and without a block",
		EndOfTurn: EndOfTurn, Stops: []string{fenceOutput}, Tags: []string{fence + "python", fenceOutput},
		Answer: AnswerBox, Tools: true, Summaries: true, Marks: append(tagMarks("think"), fence, boxOpen),
	}
}

// Added lists the fixed strings of prompts, blocks and results.
func (TIR) Added() []string {
	return slices.Concat([]string{
		EndOfTurn, replyOpen, tirOpen, tirUser, tirOpen + tirUser, systemOpen, promptOpen,
		fencePython, fencePy, fenceClose, fenceOutput, boxOpen, tirTurnOpen, tirTurnEnd,
		"\n" + prefixDecode, "\n" + prefixTool, "\n" + noOutput, prefixDecode, prefixTool, noOutput, truncated,
		messageNotClosed, messageEmpty,
	}, pythonText, reasons)
}

// Context renders the prompt at turn 0 and the output of the program at later turns.
func (p TIR) Context(v View) string {
	if v.Turn == 0 {
		marks := p.Spec().Marks
		instruction := ""
		if v.Instruction != "" {
			instruction = "\n" + guard(v.Instruction, marks)
		}
		return tirOpen + instruction + tirUser + guard(v.Task, marks) + replyOpen
	}
	last := v.Last()
	output := strings.Join(last.Bodies, "\n")
	if strings.HasSuffix(last.Response, EndOfTurn) {
		return tirTurnOpen + output + tirTurnEnd
	}
	return "\n" + output + fenceClose
}

// Parse reads the program and the box. A box in a program does not count.
func (p TIR) Parse(response string, tools []Tool) Parsed {
	text, ended := strings.CutSuffix(response, EndOfTurn)
	text, asked := cutOutput(text, ended)
	spoken := p.Spec().reason(text)
	programs, outside, open := cutPrograms(spoken.rest)
	first, _, _ := strings.Cut(spoken.rest, fence+"py")
	got := Parsed{Reasoning: spoken.thought(first), AnswerTags: boxes(strings.Join(outside, ""))}
	got.Answer, got.HasAnswer = reward.LastBoxed(strings.Join(outside, ""))
	last := strings.TrimSpace(outside[len(outside)-1])
	switch {
	case asked && len(programs) > 0 && last == "" && !open:
		got.Calls = []env.ToolCall{tirCall(programs[len(programs)-1], tools)}
		got.WellFormed = len(programs) == 1
	case asked, ended && open && !got.HasAnswer:
		got.Calls = []env.ToolCall{refuse(text, "", env.CallDecodeError, messageNotClosed)}
	case ended && len(programs) > 0 && !got.HasAnswer:
		got.Calls = []env.ToolCall{tirCall(programs[len(programs)-1], tools)}
	default:
		got.WellFormed = ended && got.HasAnswer && len(programs) == 0 && !open
	}
	if open && len(got.Calls) == 0 {
		got.OpenCalls = 1
	}
	return got
}

// cutOutput removes the opening of an output block at the end of a response that did not end its turn.
func cutOutput(text string, ended bool) (string, bool) {
	if ended {
		return text, false
	}
	return strings.CutSuffix(text, fenceOutput)
}

func tirCall(program string, tools []Tool) env.ToolCall {
	t, ok := find(orPython(tools), Python.Name)
	if !ok {
		return refuse(program, Python.Name, env.CallUnknownTool, messageUnknown+quoted(Python.Name))
	}
	return bindText(t, program)
}

var (
	programOpening = regexp.MustCompile("```py(?:thon)?\n")
	closedProgram  = regexp.MustCompile("(?s)```py(?:thon)?\n(?:(.*?)\n)??```")
)

// cutPrograms splits a text into its closed python blocks and the text outside them, which has one part more. open
// means that a block is not closed; it belongs to the last part.
func cutPrograms(text string) (programs, outside []string, open bool) {
	for m := closedProgram.FindStringSubmatchIndex(text); m != nil; m = closedProgram.FindStringSubmatchIndex(text) {
		programs = append(programs, text[max(m[2], 0):max(m[3], 0)])
		outside, text = append(outside, text[:m[0]]), text[m[1]:]
	}
	return programs, append(outside, text), programOpening.MatchString(text)
}

// Body renders the output of a program.
func (p TIR) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, p.Spec().Marks)
}

// Write writes a program or a boxed answer.
func (p TIR) Write(m env.Move) (string, bool) {
	if m.Action != "" || m.Tool != "" {
		return "", false
	}
	response := m.Thought
	switch {
	case m.Broken:
		response += fencePython + m.Code + "\n" + fenceOutput
	case m.IsCall():
		response += fencePython + m.Code + fenceClose + fenceOutput
	default:
		response += boxOpen + m.Answer + "}" + EndOfTurn
	}
	return written(p, m, response)
}
