package gguf

import (
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// The types of tokens, as llama.cpp numbers them.
const (
	tokenNormal = 1
	tokenMark   = 3 // a mark of the template, which is not text
	tokenAdded  = 4 // matched as a whole in any text
	tokenUnused = 5 // a row of the embedding that no text uses
)

// Vocabulary is the tokenizer of a model: a byte-level BPE, and whole strings.
type Vocabulary struct {
	Tokens []string // by id: plain tokens in the byte-level alphabet, and added strings; "" is an id without a token
	Added  []int32  // the ids of added strings that are text
	Marks  []int32  // the ids of added strings that are marks of the template
	Merges []string // in order: two tokens with a space between them
	Split  string   // llama.cpp's name of the way in which text is split before it is merged
	Start  int32    // the id that begins a text; −1 if there is none. Templates write it where it is needed
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
		if id < len(v.Tokens) && v.Tokens[id] != "" {
			texts[id], types[id] = v.Tokens[id], tokenNormal
		} else {
			texts[id], types[id] = fmt.Sprintf("[PAD%d]", id), tokenUnused
		}
	}
	for _, id := range v.Added {
		types[id] = tokenAdded
	}
	for _, id := range v.Marks {
		types[id] = tokenMark
	}
	out := []entry{
		{"tokenizer.ggml.model", "gpt2"}, // the byte-level alphabet
		{"tokenizer.ggml.pre", v.Split},
		{"tokenizer.ggml.tokens", texts},
		{"tokenizer.ggml.token_type", types},
		{"tokenizer.ggml.merges", append([]string{}, v.Merges...)},
		{"tokenizer.ggml.add_bos_token", false},
		{"tokenizer.ggml.add_eos_token", false},
	}
	for i, id := range s.EOS {
		out = append(out, entry{[]string{"tokenizer.ggml.eos_token_id", "tokenizer.ggml.eot_token_id"}[i], uint32(id)})
	}
	if v.Start >= 0 {
		out = append(out, entry{"tokenizer.ggml.bos_token_id", uint32(v.Start)})
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
		return "", fmt.Errorf("read tokenizer_config.json: %w", badinput.JSON(err))
	}
	if len(config.Template) == 0 || string(config.Template) == "null" {
		return "", nil
	}
	var template string
	if err := json.Unmarshal(config.Template, &template); err != nil {
		return "", fmt.Errorf("read tokenizer_config.json: chat_template: several templates cannot be written as "+
			"GGUF: %w", badinput.JSON(err))
	}
	return template, nil
}
