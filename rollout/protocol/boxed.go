package protocol

import (
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// Boxed is reasoning without tools: the policy thinks and gives the final answer in a box, in one turn.
//
// Source: the prompt of Qwen2.5-Math for reasoning in steps. It is the prompt of Hermes for an episode without tools.
type Boxed struct{}

// Spec describes the protocol.
func (Boxed) Spec() Spec {
	return Spec{
		Name: "boxed", Doc: "reasoning and a boxed answer, without tools", Source: "prompt of Qwen2.5-Math",
		Form:      "it ends its turn and holds a box",
		EndOfTurn: EndOfTurn, Answer: AnswerBox, Marks: append(tagMarks("think"), boxOpen),
	}
}

// Added lists the fixed strings of prompts and answers.
func (Boxed) Added() []string {
	return []string{EndOfTurn, replyOpen, hermesOpen([]Tool{}, ""), systemOpen, promptOpen, thinkOpen, thinkClose,
		boxOpen}
}

// Context renders the prompt. An episode has one turn, since a response holds no call.
func (p Boxed) Context(v View) string {
	if v.Turn > 0 {
		return followUp(v)
	}
	return hermesOpen([]Tool{}, v.Instruction) + guard(v.Task, p.Spec().Marks) + replyOpen
}

// followUp renders a further turn for a protocol whose episodes have one turn: the bodies, as a message of the user.
func followUp(v View) string {
	return "\n" + promptOpen + strings.Join(v.Last().Bodies, "\n") + replyOpen
}

// Parse reads the box.
func (p Boxed) Parse(response string, _ []Tool) Parsed {
	response, ended := strings.CutSuffix(response, EndOfTurn)
	text := p.Spec().reason(response)
	got := Parsed{Reasoning: text.thought(text.rest), AnswerTags: boxes(text.rest)}
	got.Answer, got.HasAnswer = reward.LastBoxed(text.rest)
	got.WellFormed = ended && got.HasAnswer
	return got
}

// Body renders a result, which no call of this protocol has.
func (p Boxed) Body(l Limit, call env.ToolCall, r *Result) string {
	return plainBody(l, call, r, p.Spec().Marks)
}

// Write writes a boxed answer.
func (p Boxed) Write(m env.Move) (string, bool) {
	if m.Action != "" || m.IsCall() {
		return "", false
	}
	return written(p, m, m.Thought+boxOpen+m.Answer+"}"+EndOfTurn)
}
