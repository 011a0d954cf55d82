package protocol

import (
	"slices"
	"strings"
)

// Summarizer is a protocol in which the policy can be asked for a summary of its episode. The loop asks after a number
// of turns. Later prompts hold the summary in place of these turns.
type Summarizer interface {
	Protocol
	// AskSummary renders the context that asks for a summary. It holds what Context would show at this turn, so that
	// the summary can tell of it. If Spec.Whole is set, it is a whole prompt.
	AskSummary(v View) string
	// AfterSummary renders the context of the turn after a summary, which is the last round. The loop calls Context
	// instead if Spec.Whole is set; View.Summary then holds the summary.
	AfterSummary(v View) string
	// Asks lists the fixed strings of both. Each is one token of a tokenizer that this program makes for a policy that
	// writes summaries.
	Asks() []string
}

// Summarizers lists the names of the protocols that ask for summaries.
func Summarizers() []string {
	var names []string
	for _, p := range All {
		if _, ok := p.(Summarizer); ok {
			names = append(names, p.Spec().Name)
		}
	}
	return names
}

// What protocols of questions ask for, and what they say after it.
const (
	SummaryRequest = "Summarize what you did and learned. You will see the task and your summary, and not the turns " +
		"before it."
	SummaryContinue = "Continue with the task."
)

// The fixed text around summaries.
const (
	summaryAsk  = "\n" + SummaryRequest + replyOpen
	summaryNext = "\n" + promptOpen + SummaryContinue + replyOpen
	// summaryTold is before a summary in a whole prompt, and summaryTell asks for one.
	summaryTold = "\n\nYour summary of the steps before:\n"
	summaryTell = "\nSummarize what you did and learned. Later prompts hold your summary in place of these steps." +
		replyOpen
)

// askSummary asks at the end of what the policy reads at this turn: in the user's turn, or in a separate one if the
// policy's turn continues after a call.
func askSummary(p Protocol, v View) string {
	context := p.Context(v)
	if asked, ok := strings.CutSuffix(context, replyOpen+p.Spec().Opening); ok {
		return asked + summaryAsk
	}
	return context + EndOfTurn + "\n" + promptOpen + strings.TrimPrefix(summaryAsk, "\n")
}

// afterSummary lets the policy continue. It ends the turn of a summary that does not end its turn itself.
func afterSummary(p Protocol, v View) string {
	next := summaryNext + p.Spec().Opening
	if strings.HasSuffix(v.Last().Response, EndOfTurn) {
		return next
	}
	return EndOfTurn + next
}

// asks lists the fixed strings of questions' protocols.
func asks(p Protocol) []string {
	return slices.Compact([]string{summaryAsk, strings.TrimPrefix(summaryAsk, "\n"), summaryNext,
		summaryNext + p.Spec().Opening})
}

// AskSummary asks for a summary after the results of calls.
func (p RStar2) AskSummary(v View) string { return askSummary(p, v) }

// AfterSummary asks to continue.
func (p RStar2) AfterSummary(v View) string { return afterSummary(p, v) }

// Asks lists the fixed strings of both.
func (p RStar2) Asks() []string { return asks(p) }

// AskSummary asks for a summary after the results of calls.
func (p Hermes) AskSummary(v View) string { return askSummary(p, v) }

// AfterSummary asks to continue.
func (p Hermes) AfterSummary(v View) string { return afterSummary(p, v) }

// Asks lists the fixed strings of both.
func (p Hermes) Asks() []string { return asks(p) }

// AskSummary asks for a summary after the output of a program.
func (p TIR) AskSummary(v View) string { return askSummary(p, v) }

// AfterSummary asks to continue.
func (p TIR) AfterSummary(v View) string { return afterSummary(p, v) }

// Asks lists the fixed strings of both.
func (p TIR) Asks() []string { return asks(p) }

// AskSummary asks for a summary after the results of calls.
func (t tagged) AskSummary(v View) string { return askSummary(t, v) }

// AfterSummary asks to continue.
func (t tagged) AfterSummary(v View) string { return afterSummary(t, v) }

// Asks lists the fixed strings of both.
func (t tagged) Asks() []string { return asks(t) }

// AskSummary renders a whole prompt that asks for a summary in place of an action.
func (ThinkAction) AskSummary(v View) string { return renderPrompt(v) + summaryTell }

// AfterSummary is Context: each prompt is whole.
func (p ThinkAction) AfterSummary(v View) string { return p.Context(v) }

// Asks lists what is around summaries in prompts.
func (ThinkAction) Asks() []string { return []string{summaryTold, summaryTell} }
