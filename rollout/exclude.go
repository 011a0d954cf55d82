package rollout

import (
	"strings"
	"unicode/utf8"
)

// reasonBytes is the maximum length of a reason.
const reasonBytes = 300

// Reason renders why a trajectory is excluded, as the record keeps it: the part that failed and the first line of its
// error text, with bounded length.
func Reason(what, text string) string {
	text = strings.TrimLeft(strings.ToValidUTF8(text, "\uFFFD"), "\r\n")
	if end := strings.IndexAny(text, "\r\n"); end >= 0 {
		text = text[:end]
	}
	reason := what + ": " + text
	if len(reason) <= reasonBytes {
		return reason
	}
	cut := reasonBytes - len("…")
	for !utf8.RuneStart(reason[cut]) {
		cut--
	}
	return reason[:cut] + "…"
}

// exclude ends an episode after a failure that its policy did not cause. why is a Reason.
func (e *Episode) exclude(why string) {
	e.Context, e.Observation, e.Finish, e.Excluded = nil, "", FinishExcluded, why
}

// excludeTurn ends an episode whose awaited response could not be generated. The record keeps the turn with only its
// context.
func (e *Episode) excludeTurn(why, version string) {
	e.Turns = append(e.Turns, Turn{
		Context: e.Context, Observation: e.Observation, Response: []int32{}, LogProbs: []float32{},
		Entropies:     []float32{},
		PolicyVersion: version, Excluded: why,
	})
	e.exclude(why)
}

// nullable returns a text as a nullable column holds it.
func nullable(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// textOrEmpty returns the text in a nullable column, or "" for null.
func textOrEmpty(text *string) string {
	if text == nil {
		return ""
	}
	return *text
}
