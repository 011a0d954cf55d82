package gguf

import (
	"encoding/json"
	"fmt"
)

// The types of tokens, as llama.cpp numbers them.
const (
	tokenNormal = 1
	tokenAdded  = 4 // matched as a whole in any text
	tokenUnused = 5 // a row of the embedding that no text uses
)

// Vocabulary is the tokenizer of a model: a byte-level BPE, and whole strings.
type Vocabulary struct {
	Tokens []string // by id: first plain tokens in the byte-level alphabet, then the added strings
	Bytes  int      // how many of them are plain: symbols of bytes, and what is merged of them
	Merges []string // in order: two tokens with a space between them
	// ChatTemplate is a Jinja template of conversations; "" if there is none.
	ChatTemplate string
}

// tokens describes the tokenizer. Two ids can end a response: GGUF calls one the end of the sequence and the other the
// end of the turn.
func (m Model) tokens() ([]entry, error) {
	s, v := m.Checkpoint.Shape, m.Vocabulary
	if len(v.Tokens) > s.Vocab {
		return nil, fmt.Errorf("write GGUF: the tokenizer has %d tokens, the model %d", len(v.Tokens), s.Vocab)
	}
	if len(s.EOS) > 2 {
		return nil, fmt.Errorf("write GGUF: config.json: eos_token_id: GGUF has room for 2 ids that end a response, "+
			"not for %d", len(s.EOS))
	}
	texts, types := make([]string, s.Vocab), make([]int32, s.Vocab)
	for id := range texts {
		switch {
		case id < v.Bytes:
			texts[id], types[id] = v.Tokens[id], tokenNormal
		case id < len(v.Tokens):
			texts[id], types[id] = v.Tokens[id], tokenAdded
		default:
			texts[id], types[id] = fmt.Sprintf("[PAD%d]", id), tokenUnused
		}
	}
	split := "default" // where a text is split does not matter if nothing is merged
	if len(v.Merges) > 0 {
		split = "gpt-2"
	}
	out := []entry{
		{"tokenizer.ggml.model", "gpt2"}, // the byte-level alphabet
		{"tokenizer.ggml.pre", split},
		{"tokenizer.ggml.tokens", texts},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", append([]string{}, v.Merges...)},
		{"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.ggml.add_eos_token", false},
	}
	for i, id := range s.EOS {
		out = append(out, entry{[]string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}[i], uint32(id)})
	}
	if s.Pad >= 0 {
		out = append(out, entry{"tokenizer.ggml.padding_token_id", uint32(s.Pad)})
	}
	if v.ChatTemplate != "" {
		out = append(out, entry{"tokenizer.chat_template", v.ChatTemplate})
	}
	return out, nil
}

// ChatTemplate finds the template of conversations among a tokenizer's files; "" if they have none.
func ChatTemplate(files map[string][]byte) (string, error) {
	if text, ok := files["chat_template.jinja"]; ok {
		return string(text), nil
	}
	text, ok := files["tokenizer_config.json"]
	if !ok {
		return "", nil
	}
	var config struct {
		Template json.RawMessage `json:"chat_template"`
	}
	if err := json.Unmarshal(text, &config); err != nil {
		return "", fmt.Errorf("read tokenizer_config.json: %w", err)
	}
	if len(config.Template) == 0 || string(config.Template) == "null" {
		return "", nil
	}
	var template string
	if err := json.Unmarshal(config.Template, &template); err != nil {
		return "", fmt.Errorf("read tokenizer_config.json: chat_template: several templates cannot be written as "+
			"GGUF: %w", err)
	}
	return template, nil
}
