package reward

import "strings"

const (
	boxOpen     = `\boxed{`
	frameOpen   = `\fbox{`
	answerOpen  = "<answer>"
	answerClose = "</answer>"
)

// LastBoxed returns the content of the last \boxed{…}, by matching braces. If the last box is not closed, it returns
// false, even if an earlier box is closed.
func LastBoxed(text string) (string, bool) {
	content, _, ok := lastBox(text, boxOpen)
	return content, ok
}

// lastBox also returns the text after the box, which opens as named.
func lastBox(text, open string) (content, after string, ok bool) {
	at := strings.LastIndex(text, open)
	if at < 0 {
		return "", "", false
	}
	rest, depth := text[at+len(open):], 1
	for i := range len(rest) {
		switch rest[i] {
		case '{':
			depth++
		case '}':
			if depth--; depth == 0 {
				return rest[:i], rest[i+1:], true
			}
		}
	}
	return "", "", false
}

// boxedLike is LastBoxed that also takes \fbox{…}. Where the gold is a percentage, a per cent sign after the box is
// part of the answer.
func boxedLike(text, gold string) (string, bool) {
	open := boxOpen
	if strings.LastIndex(text, frameOpen) > strings.LastIndex(text, boxOpen) {
		open = frameOpen
	}
	content, after, ok := lastBox(text, open)
	if strings.HasSuffix(strings.TrimSpace(gold), "%") && !strings.Contains(content, "%") {
		after = strings.TrimLeft(after, " ")
		if strings.HasPrefix(after, "%") || strings.HasPrefix(after, `\%`) {
			content += `\%`
		}
	}
	return content, ok
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
