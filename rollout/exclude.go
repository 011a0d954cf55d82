package rollout

import (
	"strings"
	"unicode/utf8"
)

// reasonBytes bounds the reason of an exclusion.
const reasonBytes = 300

// Reason is why a trajectory is excluded, as the record keeps it: what broke, and the first line
// of what was said about it, bounded.
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

// exclude ends an episode that something other than its policy broke; why is a Reason.
func (e *Episode) exclude(why string) {
	e.Context, e.Observation, e.Finish, e.Excluded = nil, "", FinishExcluded, why
}

// excludeTurn ends an episode whose awaited response could not be written: the turn is recorded
// with its context alone.
func (e *Episode) excludeTurn(why, version string) {
	e.Turns = append(e.Turns, Turn{
		Context: e.Context, Observation: e.Observation, Response: []int32{}, LogProbs: []float32{}, Entropies: []float32{},
		PolicyVersion: version, Excluded: why,
	})
	e.exclude(why)
}

// nullable is a reason as a column holds it.
func nullable(why string) *string {
	if why == "" {
		return nil
	}
	return &why
}

// given is the reason in a column, "" of null.
func given(why *string) string {
	if why == nil {
		return ""
	}
	return *why
}
