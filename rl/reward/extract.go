package reward

import "strings"

const (
	boxOpen     = `\boxed{`
	answerOpen  = "<answer>"
	answerClose = "</answer>"
)

// LastBoxed returns the content of the last \boxed{…}, by matching braces. If the last box is not closed, it returns
// false, even if an earlier box is closed.
func LastBoxed(text string) (string, bool) {
	at := strings.LastIndex(text, boxOpen)
	if at < 0 {
		return "", false
	}
	rest, depth := text[at+len(boxOpen):], 1
	for i := range len(rest) {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest[:i], true
			}
		}
	}
	return "", false
}

// LastAnswer returns the content of the last closed answer block.
func LastAnswer(text string) (string, bool) {
	end := strings.LastIndex(text, answerClose)
	if end < 0 {
		return "", false
	}
	start := strings.LastIndex(text[:end], answerOpen)
	if start < 0 {
		return "", false
	}
	return text[start+len(answerOpen) : end], true
}
