package serve

import (
	"strings"
	"unicode"
)

// The tags of reasoning.
const (
	thinkOpen  = "<think>"
	thinkClose = "</think>"
)

// longestIndent is how much white space a response may have before its reasoning.
const longestIndent = 64

// thoughts takes the reasoning with which a response begins out of the search for calls: a call in it is a draft.
type thoughts struct {
	inside bool   // the reasoning has begun; the prompt may have begun it
	over   bool   // it has ended, or there is none
	kept   string // a few bytes that cannot be told yet
}

// begun reports whether a prompt ends inside reasoning.
func begun(prompt string) bool {
	open := strings.LastIndex(prompt, thinkOpen)
	return open > strings.LastIndex(prompt, thinkClose) && strings.TrimSpace(prompt[open+len(thinkOpen):]) == ""
}

// take returns the reasoning in a text, and what follows it.
func (t *thoughts) take(text string) (reasoning, rest string) {
	if t.over {
		return "", text
	}
	t.kept += text
	if start := strings.TrimLeftFunc(t.kept, unicode.IsSpace); !t.inside {
		switch t.inside = strings.HasPrefix(start, thinkOpen); {
		case !t.inside && len(t.kept) < longestIndent && strings.HasPrefix(thinkOpen, start):
			return "", ""
		case !t.inside:
			t.over = true
			return "", t.left()
		}
	}
	if before, after, ended := strings.Cut(t.kept, thinkClose); ended {
		t.kept, t.inside, t.over = "", false, true
		return before + thinkClose, after
	}
	hold := textOut{stops: []string{thinkClose}}
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
