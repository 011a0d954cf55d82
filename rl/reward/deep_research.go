package reward

import (
	"regexp"
	"strings"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// AEPO's reward of a deep-research response:
//
// 	R = −1        if the response is malformed
// 	    f + 0.1   if f > 0 and it used both search and python
// 	    f         else
//
// where f is the F1 of the boxed answer against the gold, or with judged 1 or 0 by a judge's verdict on it. A response
// is well formed if every <think> is closed, there is exactly one <answer> pair with a whole \boxed{} inside, and each
// <search> and <python> is closed and followed by a <result> pair before anything else is called.
//
// Source: AEPO's release (the paper only names the reward); the judge instead of F1 is how the paper's §4.3
// measures tasks of deep information seeking. Departures: the release looks for the strings </search> and </python>
// anywhere. Here only blocks count, so that neither a page that a search returned nor a line of code can earn the bonus
// or break the form. Tags that a tool prints look like tags of the response, so callers that know the turns must strip
// </result> from tool output.

var deepResearch = Declaration{
	Choice: choice.Choice{
		Name: "deep_research", Doc: "F1 of the boxed answer, 0.1 for using both tools, −1 if malformed",
		Source: "AEPO's released code; ARPO §3.3", Settings: DeepResearch{},
	},
}

const (
	researchMalformed = -1
	researchBonus     = 0.1
)

// DeepResearch is the reward as one choice of a method.
type DeepResearch struct {
	// Judged uses a judge's verdict instead of F1.
	Judged bool `json:"judged" quiet:"true" doc:"a judge's verdict, 1 or 0, takes the place of F1: whether the boxed answer means the same as a gold answer (AEPO §4.3); needs judge"`
}

// Score implements Scorer.
func (d DeepResearch) Score(t Trajectory, _ Outcome) (float64, error) {
	r, f := ReadResearch(t.Text), 0.0
	switch {
	case d.Judged:
		f = t.Judgement.Score()
	case r.WellFormed:
		f = F1(r.Answer, t.golds())
	}
	return r.Reward(f), nil
}

// ByJudge implements Judged.
func (d DeepResearch) ByJudge() bool { return d.Judged }

// Ask implements Judged: the judge sees the boxed answer of a well-formed response.
func (d DeepResearch) Ask(t Trajectory, _ Outcome) (Query, bool) {
	r := ReadResearch(t.Text)
	if !d.Judged || !r.WellFormed || strings.TrimSpace(r.Answer) == "" {
		return Query{}, false
	}
	return Query{Criterion: Matching, Response: r.Answer, References: t.golds()}, true
}

// Research is the parsed form of a response.
type Research struct {
	WellFormed       bool
	Answer           string // the content of the box; "" where malformed
	Searches, Python int    // closed calls, each with its result, up to where the form broke
}

// Reward combines the form with f, the worth of the answer.
func (r Research) Reward(f float64) float64 {
	switch {
	case !r.WellFormed:
		return researchMalformed
	case f > 0 && r.Searches > 0 && r.Python > 0:
		return f + researchBonus
	}
	return f
}

// ReadResearch reads a response's form.
func ReadResearch(text string) Research {
	s := researchScan{text: text}
	for s.next() {
	}
	whole := !s.broken && s.thinking == 0 && s.answers == 1
	if whole {
		s.found.Answer, whole = LastBoxed(s.answer)
	}
	s.found.WellFormed = whole
	return s.found
}

// researchScan walks over a response from tag to tag.
type researchScan struct {
	text     string
	at       int
	broken   bool
	thinking int // open <think> tags
	answers  int
	answer   string
	found    Research
}

var researchTag = regexp.MustCompile(`</?(?:think|search|python|answer|result)>`)

// next takes the next tag; false at the end and where the form is broken.
func (s *researchScan) next() bool {
	tag, ok := s.tag()
	if !ok {
		return false
	}
	switch tag {
	case "<think>":
		s.thinking++
	case "</think>":
		s.thinking--
		s.broken = s.thinking < 0
	case "<search>":
		s.call("</search>", &s.found.Searches)
	case "<python>":
		s.call("</python>", &s.found.Python)
	case "<answer>":
		answer, closed := s.skipPast("</answer>")
		if s.broken = !closed; s.thinking == 0 { // an answer in a thought is a draft
			s.answers++
			s.answer, s.broken = answer, !closed || s.answers > 1
		}
	default: // it closes nothing, or answers nothing
		s.broken = true
	}
	return !s.broken
}

// tag finds the next tag and steps over it.
func (s *researchScan) tag() (string, bool) {
	found := researchTag.FindStringIndex(s.text[s.at:])
	if found == nil {
		return "", false
	}
	tag := s.text[s.at+found[0] : s.at+found[1]]
	s.at += found[1]
	return tag, true
}

// skipPast skips to the end of the next closing tag and returns the text before it.
func (s *researchScan) skipPast(closing string) (string, bool) {
	n := strings.Index(s.text[s.at:], closing)
	if n < 0 {
		return "", false
	}
	content := s.text[s.at : s.at+n]
	s.at += n + len(closing)
	return content, true
}

// call reads the rest of a tool call and the result that must follow it.
func (s *researchScan) call(closing string, count *int) {
	_, closed := s.skipPast(closing)
	tag, _ := s.tag()
	_, answered := s.skipPast("</result>")
	if s.broken = !closed || tag != "<result>" || !answered; !s.broken {
		*count++
	}
}
