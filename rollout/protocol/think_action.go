package protocol

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rl/reward"
)

// ThinkAction is ARLArena's protocol of actions in a text environment: <think>…</think><action>…</action>. Each turn
// has a whole prompt with these fields: the task, the number of steps taken, the latest observations with their
// actions, the current observation, and the admissible actions.
//
// Source: ARLArena App. H.1 and its release. Departures: the release's template for Sokoban shows an image and no
// earlier turns. Here every environment has the fields of ALFWorld's template, and the environment's instruction
// replaces the first lines. A response that is not well formed still acts: its action is what reward.ExtractAction
// finds in it, and its turn is invalid. In the release, only Sokoban does nothing in that case.
type ThinkAction struct{}

// The parts of the prompt and of a response.
const (
	actTaken      = "\n\nPrior to this step, you have already taken "
	actRecent     = " step(s). Below are the most recent "
	actHistory    = " observations and the corresponding actions you took:\n"
	actSeen       = "[Observation "
	actDone       = "', Action "
	actIs         = ": '"
	actEntryEnd   = "']\n"
	actStep       = "\nYou are now at step "
	actNow        = " and your current observation is:\n"
	actFirst      = "\n\nYour current observation is:\n"
	actAdmissible = "\nYour admissible actions of the current situation are: ["
	actAdmitted   = "].\n"
	actAsk        = "\nNow it's your turn to take an action.\nYou should first reason step-by-step about the " +
		"current situation. " +
		"This reasoning process MUST be enclosed within <think> </think> tags.\nOnce you've finished your " +
		"reasoning, you should choose " +
		"an admissible action for current step and present it within <action> </action> tags." + EndOfTurn +
		"\n<|im_start|>assistant\n"

	thinkOpen   = "<think>"
	thinkClose  = "</think>"
	actionOpen  = "<action>"
	actionClose = "</action>"
)

// Spec describes the protocol.
func (ThinkAction) Spec() Spec {
	return Spec{
		Name: "think_action", Doc: "a thought and one action in tags; each prompt is whole",
		Source:    "ARLArena App. H.1 and its released code",
		Form:      "it is one <think> pair and one <action> pair, without Chinese characters",
		EndOfTurn: EndOfTurn, Tags: []string{"think", "action"}, Marks: []string{chatMark}, Acts: true,
		Summaries: true, Whole: true,
	}
}

// Added lists the fixed strings of the prompt and the tags.
func (ThinkAction) Added() []string {
	return []string{
		EndOfTurn, promptOpen, actTaken, actRecent, actHistory, actSeen, actDone, actIs, actEntryEnd, actStep, actNow,
		actFirst,
		actAdmissible, actAdmitted, actAsk, actAdmitted + actAsk, "', '",
		thinkOpen, thinkClose, actionOpen, actionClose, thinkClose + actionOpen,
	}
}

// Context renders a whole prompt.
func (ThinkAction) Context(v View) string {
	if v.Summarize {
		return renderPrompt(v) + summaryTell
	}
	if v.Admissible == nil {
		return renderPrompt(v) + "\n" + actAsk
	}
	quoted := make([]string, len(v.Admissible))
	for i, a := range v.Admissible {
		quoted[i] = "'" + plain(a) + "'"
	}
	return renderPrompt(v) + actAdmissible + strings.Join(quoted, ", ") + actAdmitted + actAsk
}

// renderPrompt renders a prompt up to the current observation.
func renderPrompt(v View) string {
	var b strings.Builder
	b.WriteString(promptOpen + plain(strings.Join(nonEmpty(v.Instruction, v.Task), "\n")))
	if v.Summary != "" {
		b.WriteString(summaryTold + plain(v.Summary))
	}
	if v.Turn == 0 || len(v.Past) == 0 {
		b.WriteString(actFirst)
	} else {
		fmt.Fprintf(&b, "%s%d%s%d%s", actTaken, v.Turn, actRecent, len(v.Past), actHistory)
		for i, e := range v.Past {
			n := v.Turn - len(v.Past) + i + 1
			fmt.Fprintf(&b, "%s%d%s%s%s%d%s%s%s", actSeen, n, actIs, plain(e.Observation), actDone, n, actIs,
				plain(e.Action), actEntryEnd)
		}
		fmt.Fprintf(&b, "%s%d%s", actStep, v.Turn+1, actNow)
	}
	b.WriteString(plain(v.Observation))
	return b.String()
}

func nonEmpty(texts ...string) []string {
	return slices.DeleteFunc(texts, func(t string) bool { return t == "" })
}

// plain returns an environment's text without anything that could be read as a special token. Tags in it are harmless:
// each prompt is whole, and only responses are parsed.
func plain(text string) string { return guard(text, []string{chatMark}) }

// Parse reads the thought and the action.
func (ThinkAction) Parse(response string, _ []Tool) Parsed {
	text, ended := strings.CutSuffix(response, EndOfTurn)
	action := reward.ExtractAction(text)
	p := Parsed{Action: action.Text, WellFormed: action.Strict && ended}
	thoughts, outside := between(text, thinkOpen, thinkClose)
	if drafted := strings.Contains(strings.ToLower(text), actionOpen); drafted && !action.Strict {
		p.Action = reward.ExtractAction(strings.Join(outside, "")).Text
	}
	if len(thoughts) > 0 {
		p.Reasoning = thoughts[0]
	}
	return p
}

// Body is empty: the protocol has no tools.
func (ThinkAction) Body(Limit, env.ToolCall, *Result) string { return "" }

// Write writes a thought and an action.
func (ThinkAction) Write(m env.Move) (string, bool) {
	if m.Action == "" {
		return "", false
	}
	return thinkOpen + m.Thought + thinkClose + actionOpen + m.Action + actionClose + EndOfTurn, true
}
