package openai

import "encoding/json"

// A *preference pair* holds two answers to one prompt, as UltraFeedback and TRL write them: chosen and rejected are
// lists of messages, or texts, and prompt is a text or a list of messages, which chosen and rejected may repeat.

// expand makes two conversations of a preference pair, the chosen one with the reward 1 and the rejected one with 0.
// Anything else stays as it is.
func expand(text []byte) (out [][]byte, err error) {
	defer catch(&err)
	var o object
	if json.Unmarshal(text, &o.fields) != nil || !o.has("chosen") || !o.has("rejected") || o.has("messages") {
		return [][]byte{text}, nil // readItem says what is wrong
	}
	answers := [][]json.RawMessage{o.answered("chosen"), o.answered("rejected")}
	delete(o.fields, "chosen")
	delete(o.fields, "rejected")
	for i, answered := range answers {
		o.fields["reward"] = json.RawMessage([]string{"1", "0"}[i])
		if o.fields["messages"], err = json.Marshal(answered); err != nil {
			return nil, err
		}
		item, err := json.Marshal(o.fields)
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	return out, nil
}

// answered returns the messages of the prompt and of one answer.
func (o object) answered(field string) []json.RawMessage {
	answer := o.spoken(field, "assistant")
	var first struct {
		Role string `json:"role"`
	}
	if json.Unmarshal(answer[0], &first) == nil && first.Role != "assistant" {
		return answer // it repeats the prompt
	}
	if !o.has("prompt") {
		panic(fault("prompt", "is missing, and %s does not begin with it", field))
	}
	return append(o.spoken("prompt", "user"), answer...)
}

// spoken reads a field that is a list of messages, or the text of one.
func (o object) spoken(field, role string) (messages []json.RawMessage) {
	var text string
	if json.Unmarshal(o.fields[field], &text) == nil {
		one, _ := json.Marshal(map[string]string{"role": role, "content": text}) // texts can always be written
		return []json.RawMessage{one}
	}
	if json.Unmarshal(o.fields[field], &messages) != nil || len(messages) == 0 {
		panic(fault(field, "must be text or a list of messages, got %s", shown(o.fields[field])))
	}
	return messages
}
