package protocol

import "strings"

// Message is a response as the content of an assistant's message in a chat: with the <reason> that
// the generation prompt began for it, without the end-of-turn tag, and without the blocks that drop
// names by their number, because the message lists those calls beside its content.
func Message(response string, drop func(block int) bool) string {
	rest := strings.TrimSuffix(response, EndOfTurn)
	var kept strings.Builder
	kept.WriteString(reasonOpen)
	for block := 0; ; block++ {
		before, inside, found := strings.Cut(rest, callTag)
		inside, after, closed := strings.Cut(inside, callTagClose)
		if !found || !closed {
			break
		}
		kept.WriteString(before)
		if !drop(block) {
			kept.WriteString(callTag + inside + callTagClose)
		}
		rest = after
	}
	kept.WriteString(rest)
	return kept.String()
}

// ToolResponse is the body of a call that no message can list, as a user's message says it.
func ToolResponse(body string) string {
	return "<tool_response>\n" + body + "\n</tool_response>"
}
