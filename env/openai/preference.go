package openai

import (
	"encoding/json"
	"maps"
)

// A *preference pair* holds two answers to one prompt, as UltraFeedback and TRL write them: chosen and rejected are
// lists of messages, or texts, and prompt is a text or a list of messages, which chosen and rejected may repeat.

// expand makes two conversations of a preference pair, the chosen one with the reward 1 and the rejected one with 0.
// Anything else stays as it is.
func expand(e entry) ([]entry, error) {
	o, err := readObject(e.text)
	if err != nil || !o.has("chosen") || !o.has("rejected") || o.has("messages") {
		return []entry{e}, nil // readItem says what is wrong
	}
	var out []entry
	for i, field := range []string{"chosen", "rejected"} {
		messages, err := o.answered(field)
		if err != nil {
			return nil, err
		}
		item := maps.Clone(o)
		delete(item, "chosen")
		delete(item, "rejected")
		if item["messages"], err = json.Marshal(messages); err != nil {
			return nil, err
		}
		item["reward"] = json.RawMessage([]string{"1", "0"}[i])
		text, err := json.Marshal(item)
		if err != nil {
			return nil, err
		}
		out = append(out, entry{e.line, text})
	}
	return out, nil
}

// answered returns the messages of the prompt and of one answer.
func (o object) answered(field string) ([]json.RawMessage, error) {
	answer, err := o.spoken(field, "assistant")
	if err != nil {
		return nil, err
	}
	var first struct {
		Role string `json:"role"`
	}
	if json.Unmarshal(answer[0], &first) == nil && first.Role != "assistant" {
		return answer, nil // it repeats the prompt
	}
	if !o.has("prompt") {
		return nil, fault("prompt", "is missing, and %s does not begin with it", field)
	}
	prompt, err := o.spoken("prompt", "user")
	return append(prompt, answer...), err
}

// spoken reads a field that is a list of messages, or the text of one.
func (o object) spoken(field, role string) (messages []json.RawMessage, err error) {
	var text string
	if json.Unmarshal(o[field], &text) == nil {
		one, err := json.Marshal(map[string]string{"role": role, "content": text})
		return []json.RawMessage{one}, err
	}
	if json.Unmarshal(o[field], &messages) != nil || len(messages) == 0 {
		return nil, fault(field, "must be text or a list of messages, got %s", shown(o[field]))
	}
	return messages, nil
}
