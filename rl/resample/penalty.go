package resample

import (
	"math"
	"regexp"
	"strings"
)

// Penalties measure how many faults a trajectory made on the way to its answer.
type Penalties struct {
	Error  float64 // p_err: share of the tool calls that failed; 0.5 without calls
	Format float64 // p_format: 1 without an answer, else surplus answers per turn, at most 1
}

// Total is p_err + p_format.
func (p Penalties) Total() float64 { return p.Error + p.Format }

// noCallPenalty is p_err of a trajectory without tool calls.
const noCallPenalty = 0.5

// StructuredPenalties computes the penalties from recorded outcomes. failing includes calls that did not parse,
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

// TextPenalties computes the penalties from a rendered response, as the release does: a tool response failed if it
// contains the word "error" in any case. So a time-out does not count as a failure, and an output that prints the
// word does. The response begins inside its first assistant turn, whose header is part of the prompt. The release
// therefore counts one turn too few; with trueTurns all turns are counted.
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
