package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// Names of files that Read reads.
const (
	fileTokenizer       = "tokenizer.json"
	fileTokenizerConfig = "tokenizer_config.json"
	fileTemplate        = "chat_template.jinja"
	fileSpecial         = "special_tokens_map.json"
)

// Small lists the names of the files that Read reads if a model has them.
func Small() []string {
	return []string{checkpoint.FileConfig, checkpoint.FileGeneration, fileTokenizer, fileTokenizerConfig, fileTemplate,
		fileSpecial}
}

// Model is what a run needs of a model besides its weights.
type Model struct {
	Shape  checkpoint.Shape
	Config string // config.json
	Tokens tokenizer.Codec
	// Template is the chat template in Jinja, and ToolTemplate the one for conversations with tools, if the model has a
	// separate one. "" if there is none.
	Template, ToolTemplate string
	// Special are the special tokens that templates write, by the names of tokenizer_config.json: bos_token, eos_token
	// …
	Special map[string]string
	// Ends are the added tokens that end a response, as the configuration names them.
	Ends []string
}

// Read reads a model's small files.
func Read(files map[string][]byte) (Model, error) {
	shape, err := checkpoint.ParseConfig(files[checkpoint.FileConfig])
	if err != nil {
		return Model{}, err
	}
	m, err := read(shape, files)
	m.Config = string(files[checkpoint.FileConfig])
	return m, err
}

// read reads the small files of a model whose configuration is known.
func read(shape checkpoint.Shape, files map[string][]byte) (Model, error) {
	m := Model{Shape: shape, Special: map[string]string{}}
	var err error
	text, ok := files[fileTokenizer]
	if !ok {
		return m, fmt.Errorf("%w: there is no %s", checkpoint.ErrUnsupported, fileTokenizer)
	}
	if m.Tokens, err = tokenizer.Read(text); err != nil {
		return m, err
	}
	if m.Tokens.VocabSize() > m.Shape.Vocab {
		return m, fmt.Errorf("the tokenizer has %d tokens, and the model's vocab_size is %d", m.Tokens.VocabSize(),
			m.Shape.Vocab)
	}
	if published, is := m.Tokens.(*tokenizer.Published); is {
		if m.Tokens, err = published.Padded(m.Shape.Vocab); err != nil {
			return m, err
		}
	}
	for _, name := range []string{fileSpecial, fileTokenizerConfig} {
		if err := m.special(name, files[name]); err != nil {
			return m, err
		}
	}
	if template, ok := files[fileTemplate]; ok {
		m.Template, m.ToolTemplate = string(template), ""
	}
	return m, m.ends(files[checkpoint.FileGeneration])
}

// special reads the special tokens of a file, and its chat template.
func (m *Model) special(name string, text []byte) error {
	if text == nil {
		return nil
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(text, &fields); err != nil {
		return fmt.Errorf("read %s: %w", name, badinput.JSON(err))
	}
	for _, key := range []string{"bos_token", "eos_token", "pad_token", "unk_token"} {
		if text, _ := tokenText(fields[key]); text != "" {
			m.Special[key] = text
		}
	}
	raw, ok := fields["chat_template"]
	if !ok || json.Unmarshal(raw, &m.Template) == nil { // null leaves the template as it is
		return nil
	}
	var several []struct{ Name, Template string }
	if err := json.Unmarshal(raw, &several); err != nil {
		return fmt.Errorf("read %s: chat_template is neither a text nor a list of named texts", name)
	}
	for _, t := range several {
		switch t.Name {
		case "default":
			m.Template = t.Template
		case "tool_use":
			m.ToolTemplate = t.Template
		}
	}
	return nil
}

// tokenText is the text of a special token, which is a text or an object with its content; "" if there is none.
func tokenText(raw json.RawMessage) (text string, err error) {
	if raw == nil || json.Unmarshal(raw, &text) == nil {
		return text, nil
	}
	var token struct{ Content string }
	if json.Unmarshal(raw, &token) != nil {
		err = errors.New("is neither a text nor an object with one")
	}
	return token.Content, err
}

// ends finds the added tokens that end a response: those of generation_config.json, or of config.json.
func (m *Model) ends(generation []byte) error {
	ids := m.Shape.EOS
	if generation != nil {
		var g struct {
			EOS json.RawMessage `json:"eos_token_id"`
		}
		if err := json.Unmarshal(generation, &g); err != nil {
			return fmt.Errorf("read %s: %w", checkpoint.FileGeneration, badinput.JSON(err))
		}
		var one int32
		var many []int32
		if json.Unmarshal(g.EOS, &one) == nil && string(g.EOS) != "null" {
			ids = []int32{one}
		} else if json.Unmarshal(g.EOS, &many) == nil && len(many) > 0 {
			ids = many
		}
	}
	if m.Tokens.Check(ids) != nil {
		return fmt.Errorf("eos_token_id %v is outside the vocabulary of %d", ids, m.Tokens.VocabSize())
	}
	for _, id := range ids {
		text := m.Tokens.Decode([]int32{id})
		if known, ok := m.Tokens.ID(text); ok && known == id {
			m.Ends = append(m.Ends, text)
		}
	}
	return nil
}
