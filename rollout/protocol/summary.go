package protocol

import (
	"slices"
	"strings"
)

// Summarizers lists the names of the protocols whose policies can be asked for summaries.
func Summarizers() []string {
	var names []string
	for _, p := range All {
		if p.Spec().Summaries {
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

// AskSummary renders the context that asks for a summary. It holds what Context would show at this turn, so that the
// summary can tell of it. If Spec.Whole is set, it is a whole prompt. Otherwise it asks in the user's turn, or in a
// separate one if the policy's turn continues after a call.
func AskSummary(p Protocol, v View) string {
	spec := p.Spec()
	v.Summarize = spec.Whole
	context := p.Context(v)
	if spec.Whole {
		return context
	}
	if asked, ok := strings.CutSuffix(context, replyOpen+spec.Opening); ok {
		return asked + summaryAsk
	}
	return context + EndOfTurn + "\n" + promptOpen + strings.TrimPrefix(summaryAsk, "\n")
}

// AfterSummary renders the context of the turn after a summary, which is the last round. It ends the turn of a summary
// that does not end its turn itself. If Spec.Whole is set, the loop calls Context instead; View.Summary then holds the
// summary.
func AfterSummary(p Protocol, v View) string {
	next := summaryNext + p.Spec().Opening
	if strings.HasSuffix(v.Last().Response, EndOfTurn) {
		return next
	}
	return EndOfTurn + next
}

// Asks lists the fixed strings of both. Each is one token of a tokenizer that this program makes for a policy that
// writes summaries.
func Asks(p Protocol) []string {
	spec := p.Spec()
	if spec.Whole {
		return []string{summaryTold, summaryTell}
	}
	return slices.Compact([]string{summaryAsk, strings.TrimPrefix(summaryAsk, "\n"), summaryNext,
		summaryNext + spec.Opening})
}
