package protocol

import "strings"

// chatMark begins every special token of a chat.
const chatMark = "<|"

// tagMarks returns the opening and closing tags with the given names, and the beginning of special tokens.
func tagMarks(names ...string) []string {
	marks := []string{chatMark}
	for _, n := range names {
		marks = append(marks, "<"+n+">", "</"+n+">")
	}
	return marks
}

// guard makes text from outside harmless: it puts a space after the first character of each mark in the text, so that
// neither a parser nor a tokenizer can find the mark there. Each mark is ASCII and holds no space, so the result holds
// no mark. The text becomes valid UTF-8.
func guard(text string, marks []string) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	var b strings.Builder
	from := 0
	for i := range len(text) {
		for _, m := range marks {
			if text[i] == m[0] && strings.HasPrefix(text[i:], m) {
				b.WriteString(text[from:i+1] + " ")
				from = i + 1
				break
			}
		}
	}
	if from == 0 {
		return text
	}
	b.WriteString(text[from:])
	return b.String()
}

// Harmless is text from outside in which no mark can be found any more. Without marks in it, it stays as it is.
func Harmless(text string, marks []string) string { return guard(text, marks) }
