package serve

import (
	"strings"
	"unicode"
)

// longestIndent is how much white space a response may have before its reasoning.
const longestIndent = 64

// thoughts takes the reasoning with which a response begins out of the search for calls: a call in it is a draft.
type thoughts struct {
	inside bool   // the reasoning has begun; the prompt may have begun it
	over   bool   // it has ended, or there is none
	kept   string // a few bytes that cannot be told yet
	// open and close are the tags of the reasoning.
	open, close string
}

// begun reports whether a prompt ends inside reasoning.
func begun(prompt, open, closing string) bool {
	at := strings.LastIndex(prompt, open)
	return at > strings.LastIndex(prompt, closing) && strings.TrimSpace(prompt[at+len(open):]) == ""
}

// take returns the reasoning in a text, and what follows it.
func (t *thoughts) take(text string) (reasoning, rest string) {
	if t.over {
		return "", text
	}
	t.kept += text
	if start := strings.TrimLeftFunc(t.kept, unicode.IsSpace); !t.inside {
		switch t.inside = strings.HasPrefix(start, t.open); {
		case !t.inside && len(t.kept) < longestIndent && strings.HasPrefix(t.open, start):
			return "", ""
		case !t.inside:
			t.over = true
			return "", t.left()
		}
	}
	if before, after, ended := strings.Cut(t.kept, t.close); ended {
		t.kept, t.inside, t.over = "", false, true
		return before + t.close, after
	}
	hold := textOut{stops: []string{t.close}}
	cut := len(t.kept) - hold.mayBegin(t.kept)
	reasoning, t.kept = t.kept[:cut], t.kept[cut:]
	return reasoning, ""
}

// left returns what was held back.
func (t *thoughts) left() string {
	text := t.kept
	t.kept = ""
	return text
}
