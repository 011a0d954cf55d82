package resample

import (
	"math"
	"regexp"
	"strings"
)

// Penalties grade how cleanly a trajectory came to its answer.
type Penalties struct {
	Error  float64 // p_err: failing share of the tool calls; 0.5 without any
	Format float64 // p_format: 1 without an answer, else surplus answers per turn, at most 1
}

// Total is p_err + p_format.
func (p Penalties) Total() float64 { return p.Error + p.Format }

// noCallPenalty is p_err of a trajectory that called no tool.
const noCallPenalty = 0.5

// StructuredPenalties counts from recorded outcomes. failing includes calls that did not parse,
// failed or timed out; answers are closed answer pairs; turns are assistant turns.
func StructuredPenalties(calls, failing, answers, turns int) Penalties {
	p := Penalties{Error: noCallPenalty, Format: 1}
	if calls > 0 {
		p.Error = float64(failing) / float64(calls)
	}
	if answers > 0 && turns > 0 {
		p.Format = math.Min(1, float64(answers-1)/float64(turns))
	}
	return p
}

var (
	toolResponse  = regexp.MustCompile(`(?s)<tool_response>(.*?)</tool_response>`)
	answerPair    = regexp.MustCompile(`(?s)<answer>.*?</answer>`)
	assistantTurn = regexp.MustCompile(`(?s)<\|im_start\|>assistant\n.*?<\|im_end\|>`)
)

// TextPenalties reads the penalties off a rendered response, as the release does: a tool response
// fails when it holds the word "error" in any case (so time-outs do not, and an output that prints
// the word does). The response begins inside its first assistant turn, whose header is part of
// the prompt; the release therefore counts a turn too few, trueTurns counts them all.
func TextPenalties(response string, trueTurns bool) Penalties {
	calls, failing := 0, 0
	for _, m := range toolResponse.FindAllStringSubmatch(response, -1) {
		calls++
		if strings.Contains(strings.ToLower(m[1]), "error") {
			failing++
		}
	}
	answers := len(answerPair.FindAllString(response, -1))
	if strings.Count(response, "<answer>") != answers || strings.Count(response, "</answer>") != answers {
		answers = 0
	}
	turns := len(assistantTurn.FindAllString(response, -1))
	if trueTurns {
		turns++
	}
	return StructuredPenalties(calls, failing, answers, turns)
}
