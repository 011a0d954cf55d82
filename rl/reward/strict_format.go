package reward

import "strings"

// The strict form of a response, and the action that is taken from it.
//
//	<think>…</think> <action>…</action>, white space around and between, each of the four tags
//	exactly once, in any case, and no Chinese character (U+4E00–U+9FFF) anywhere
//
// Source: ARLArena §3.1 (2) and its release, whose expressions SPEAR's agent tasks share. Departures: the letters of
// tags are lowered in ASCII only. Sokoban's moves are looked up as whole words, since a search for substrings finds
// "up" in "group". The first move counts, in the <action> block or, without one, in the whole text.

// Action is what a response asks the environment to do.
type Action struct {
	Text   string // lower case, trimmed; executed even if it is invalid
	Strict bool   // the response has the strict form; otherwise the turn is penalised
}

// actionTail is how many characters of a response without an <action> block are executed.
const actionTail = 30

const (
	thinkOpen   = "<think>"
	thinkClose  = "</think>"
	actionOpen  = "<action>"
	actionClose = "</action>"
)

// StrictForm returns the content of the action block of a response in strict form.
func StrictForm(text string) (action string, ok bool) {
	lower := lowerASCII(text)
	var parts []string // before each tag
	from := 0
	for _, tag := range []string{thinkOpen, thinkClose, actionOpen, actionClose} {
		at := strings.Index(lower[from:], tag)
		if at < 0 || strings.Count(lower, tag) != 1 {
			return "", false
		}
		parts = append(parts, text[from:from+at])
		from += at + len(tag)
	}
	ok = blank(parts[0]) && blank(parts[2]) && blank(text[from:]) && !strings.ContainsFunc(text, chinese)
	if !ok {
		return "", false
	}
	return parts[3], true
}

func chinese(r rune) bool { return r >= 0x4e00 && r <= 0x9fff }

// lowerASCII lowers A–Z alone, byte by byte, so that positions stay those of the text.
func lowerASCII(text string) string {
	out := []byte(text)
	for i, c := range out {
		if c >= 'A' && c <= 'Z' {
			out[i] = c + 'a' - 'A'
		}
	}
	return string(out)
}

// ExtractAction takes an action from a response: the strict form's, which is valid; else what the
// first <action> block holds; else the last 30 characters.
func ExtractAction(text string) Action {
	if action, ok := StrictForm(text); ok {
		return Action{Text: normalizeAction(action), Strict: true}
	}
	for _, b := range Blocks(lowerASCII(text), "action") {
		return Action{Text: normalizeAction(text[b.Start+len(actionOpen) : b.End-len(actionClose)])}
	}
	characters := []rune(text)
	return Action{Text: normalizeAction(string(characters[max(0, len(characters)-actionTail):]))}
}

// normalizeAction is an action's text as environments take it: lower case, trimmed.
func normalizeAction(text string) string { return strings.TrimFunc(strings.ToLower(text), isSpace) }
