package serve

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/pretrained"
)

// Model is what the server needs of a model besides its weights.
type Model struct {
	pretrained.Model
	chat    *chat          // nil if the model has no chat template
	why     string         // no chat template
	special map[int32]bool // ids that texts leave out
	stop    []int32        // ids that end a response
	begin   []int32        // ids before a text, as the tokenizer adds them
	files   map[string][]byte
}

// ReadModel reads a model's small files from its folder.
func ReadModel(folder string) (*Model, error) {
	files, err := pretrained.Files(folder)
	if err != nil {
		return nil, err
	}
	read, err := pretrained.Read(files)
	if err != nil {
		return nil, err
	}
	m := &Model{Model: read, special: map[int32]bool{}, files: files}
	for _, id := range m.Shape.EOS {
		if m.Tokens.Check([]int32{id}) == nil {
			m.stop = append(m.stop, id)
		}
	}
	for _, text := range m.Ends {
		if id, ok := m.Tokens.ID(text); ok {
			m.stop = append(m.stop, id)
		}
	}
	if err := m.readTokenizer(files["tokenizer.json"]); err != nil {
		return nil, err
	}
	if m.chat, err = newChat(m); err != nil {
		m.why = err.Error()
	} else if id, ok := m.Tokens.ID(m.chat.Spec().EndOfTurn); ok {
		m.stop = append(m.stop, id)
	}
	slices.Sort(m.stop)
	m.stop = slices.Compact(m.stop)
	return m, nil
}

// readTokenizer finds out which tokens are special, and which a text begins with.
func (m *Model) readTokenizer(text []byte) error {
	var file struct {
		Added []struct {
			ID      int32 `json:"id"`
			Special bool  `json:"special"`
		} `json:"added_tokens"`
		Post json.RawMessage `json:"post_processor"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return fmt.Errorf("read tokenizer.json: %w", badinput.JSON(err))
	}
	for _, t := range file.Added {
		if t.Special {
			m.special[t.ID] = true
		}
	}
	for _, name := range templateStart(file.Post) {
		if id, ok := m.Tokens.ID(name); ok {
			m.begin = append(m.begin, id)
		}
	}
	return nil
}

// templateStart lists the special tokens that a tokenizer's TemplateProcessing writes before a text.
func templateStart(raw json.RawMessage) (out []string) {
	var p struct {
		Type       string            `json:"type"`
		Processors []json.RawMessage `json:"processors"`
		Single     []struct {
			SpecialToken *struct {
				ID string `json:"id"`
			}
		} `json:"single"`
	}
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return nil
	}
	for _, inner := range p.Processors {
		out = append(out, templateStart(inner)...)
	}
	for _, part := range p.Single {
		if part.SpecialToken == nil {
			break
		}
		out = append(out, part.SpecialToken.ID)
	}
	return out
}

// encode returns a text's ids. With begin they include the tokens that the tokenizer puts before a text, unless the
// text has them already.
func (m *Model) encode(text string, begin bool) []int32 {
	ids := m.Tokens.Encode(text)
	if begin && len(m.begin) > 0 && (len(ids) < len(m.begin) || !slices.Equal(ids[:len(m.begin)], m.begin)) {
		ids = append(slices.Clone(m.begin), ids...)
	}
	return ids
}

// sameTexts refuses a model that does not read and write texts as this one, since requests that wait have ids already.
func (m *Model) sameTexts(other *Model) error {
	if m.Tokens.VocabSize() != other.Tokens.VocabSize() || string(m.files["tokenizer.json"]) !=
		string(other.files["tokenizer.json"]) {
		return fmt.Errorf("its tokenizer is not that of the model that is served")
	}
	if m.Shape.Positions != other.Shape.Positions {
		return fmt.Errorf("it has %d positions, and the model that is served %d", other.Shape.Positions,
			m.Shape.Positions)
	}
	return nil
}
