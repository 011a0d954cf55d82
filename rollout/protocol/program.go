package protocol

import (
	"strings"

	"github.com/ropewalk/ropewalk/env"
)

// Program is one turn in which the policy thinks and writes a program in a ```python block. The program is the final
// answer: the policy does not run it, and a grader does.
//
// Source: the usual form of instructions for HumanEval. Departure: HumanEval itself has a model complete the prompt; an
// answer may still be a body alone, which the grader puts behind the prompt.
type Program struct{}

// The fixed text.
const (
	programOpen = systemOpen + `Please reason step by step, and write a Python program that completes the task in ` +
		`one python block.`
	programUser = EndOfTurn + "\n" + promptOpen
	fenceEnd    = "\n" + fence
)

// Spec describes the protocol.
func (Program) Spec() Spec {
	return Spec{
		Name: "program", Doc: "reasoning and a program in a python block as the answer, without tools",
		Source:    "HumanEval (Chen et al. 2021), as instructions",
		Form:      "it ends its turn with its only python block",
		EndOfTurn: EndOfTurn, Tags: []string{fence + "python"}, Answer: AnswerProgram,
		Marks: append(tagMarks("think"), fence),
	}
}

// Added lists the fixed strings of prompts and programs.
func (Program) Added() []string {
	added := []string{EndOfTurn, replyOpen, programOpen, programUser, programOpen + programUser, systemOpen, promptOpen,
		fencePython, fencePy, fenceEnd, thinkOpen, thinkClose}
	return append(added, pythonText...)
}

// Context renders the prompt. An episode has one turn, since a response holds no call.
func (p Program) Context(v View) string {
	if v.Turn > 0 {
		return followUp(v)
	}
	marks, instruction := p.Spec().Marks, ""
	if v.Instruction != "" {
		instruction = "\n" + guard(v.Instruction, marks)
	}
	return programOpen + instruction + programUser + guard(v.Task, marks) + replyOpen
}

// Parse reads the last closed block. Its lines keep their indentation.
func (p Program) Parse(response string, _ []Tool) Parsed {
	response, ended := strings.CutSuffix(response, EndOfTurn)
	text := p.Spec().reason(response)
	programs, outside, open := cutPrograms(text.rest)
	first, _, _ := strings.Cut(text.rest, fence+"py")
	got := Parsed{Reasoning: text.thought(first), AnswerTags: len(programs), HasAnswer: len(programs) > 0}
	if got.HasAnswer {
		got.Answer = programs[len(programs)-1]
	}
	got.WellFormed = ended && !open && len(programs) == 1 && strings.TrimSpace(outside[1]) == ""
	return got
}

// Body renders a result, which no call of this protocol has.
func (p Program) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, p.Spec().Marks)
}

// Write writes a program as the answer.
func (p Program) Write(m env.Move) (string, bool) {
	if m.Action != "" || m.IsCall() {
		return "", false
	}
	return written(p, m, m.Thought+fencePython+m.Answer+fenceEnd+EndOfTurn)
}
