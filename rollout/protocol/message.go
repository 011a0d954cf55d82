package protocol

import "strings"

// Blocks counts the <tool_call> blocks of a response outside of its reasoning. In Hermes each of them is a call. Other
// protocols write calls in other forms, which stay in the content of a message.
func Blocks(response string) int {
	blocks, _ := between(Hermes{}.Spec().Spoken(response), callTag, callTagClose)
	return len(blocks)
}

// Message renders a response as the content of an assistant message in a chat. The content includes the opening of the
// response that the generation prompt holds (Spec.Opening). It leaves out the end-of-turn tag and the blocks for which
// drop returns true, because the message lists those calls separately from its content.
func Message(opening, response string, drop func(block int) bool) string {
	text, spec := strings.TrimSuffix(response, EndOfTurn), Hermes{}.Spec()
	if opening == reasonOpen {
		spec = RStar2{}.Spec()
	}
	var kept strings.Builder
	kept.WriteString(opening)
	at, block := 0, 0
	for _, span := range spec.reason(text).spans {
		kept.WriteString(text[at:span[0]]) // reasoning, drafts of calls included
		blocks, outside := between(text[span[0]:span[1]], callTag, callTagClose)
		for i, inside := range blocks {
			kept.WriteString(outside[i])
			if !drop(block) {
				kept.WriteString(callTag + inside + callTagClose)
			}
			block++
		}
		kept.WriteString(outside[len(blocks)])
		at = span[1]
	}
	return kept.String() + text[at:]
}

// ToolResponse renders, for a user message, the body of a call that no assistant message can list.
func ToolResponse(body string) string {
	return "<tool_response>\n" + body + "\n</tool_response>"
}
