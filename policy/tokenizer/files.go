package tokenizer

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// symbolOf is the byte-level alphabet: the character that represents each byte. Printable Latin-1 characters
// represent themselves; the other bytes take the code points from 256 on, in order (Radford et al. 2019).
var symbolOf, symbolByte = alphabet()

func alphabet() ([byteTokens]rune, map[rune]byte) {
	var of [byteTokens]rune
	back := make(map[rune]byte, byteTokens)
	next := rune(byteTokens)
	for b := 0; b < byteTokens; b++ {
		r := rune(b)
		printable := (r >= '!' && r <= '~') || (r >= 0xA1 && r <= 0xAC) || r >= 0xAE
		if !printable {
			r = next
			next++
		}
		of[b] = r
		back[r] = byte(b)
	}
	return of, back
}

// The shapes of tokenizer.json that this package writes and reads.
type (
	fileJSON struct {
		Version       string      `json:"version"`
		Truncation    any         `json:"truncation"`
		Padding       any         `json:"padding"`
		AddedTokens   []addedJSON `json:"added_tokens"`
		Normalizer    any         `json:"normalizer"`
		PreTokenizer  byteLevel   `json:"pre_tokenizer"`
		PostProcessor any         `json:"post_processor"`
		Decoder       byteLevel   `json:"decoder"`
		Model         modelJSON   `json:"model"`
	}
	addedJSON struct {
		ID         int32  `json:"id"`
		Content    string `json:"content"`
		SingleWord bool   `json:"single_word"`
		LStrip     bool   `json:"lstrip"`
		RStrip     bool   `json:"rstrip"`
		Normalized bool   `json:"normalized"`
		Special    bool   `json:"special"`
	}
	byteLevel struct {
		Type           string `json:"type"`
		AddPrefixSpace bool   `json:"add_prefix_space"`
		TrimOffsets    bool   `json:"trim_offsets"`
		UseRegex       bool   `json:"use_regex"`
	}
	modelJSON struct {
		Type                    string           `json:"type"`
		Dropout                 any              `json:"dropout"`
		UnkToken                any              `json:"unk_token"`
		ContinuingSubwordPrefix any              `json:"continuing_subword_prefix"`
		EndOfWordSuffix         any              `json:"end_of_word_suffix"`
		FuseUnk                 bool             `json:"fuse_unk"`
		ByteFallback            bool             `json:"byte_fallback"`
		IgnoreMerges            bool             `json:"ignore_merges"`
		Vocab                   map[string]int32 `json:"vocab"`
		Merges                  []any            `json:"merges"` // "left right", or [left, right]
	}
	configJSON struct {
		TokenizerClass string `json:"tokenizer_class"`
		// Cleaning up would delete spaces before punctuation when decoding.
		CleanUp        bool   `json:"clean_up_tokenization_spaces"`
		EOSToken       string `json:"eos_token,omitempty"`
		PadToken       string `json:"pad_token,omitempty"`
		ModelMaxLength int64  `json:"model_max_length"`
	}
)

// unboundedLength leaves the length limit to the model's own configuration.
const unboundedLength = 1 << 30

// spelt writes bytes in the byte-level alphabet.
func spelt(piece string) string {
	out := make([]rune, len(piece))
	for i := range len(piece) {
		out[i] = symbolOf[piece[i]]
	}
	return string(out)
}

// Files returns tokenizer.json and tokenizer_config.json. The same tokenizer gives the same bytes.
func (t *Tokenizer) Files() map[string][]byte {
	level := byteLevel{Type: "ByteLevel", TrimOffsets: true}
	file := fileJSON{
		Version:      "1.0",
		AddedTokens:  make([]addedJSON, len(t.added)),
		PreTokenizer: byteLevel{Type: level.Type, TrimOffsets: level.TrimOffsets, UseRegex: t.merges != nil},
		Decoder:      level,
		Model:        modelJSON{Type: "BPE", Vocab: make(map[string]int32, t.plain), Merges: []any{}},
	}
	for _, m := range t.Merges() {
		left, right, _ := strings.Cut(m, " ")
		file.Model.Merges = append(file.Model.Merges, []string{left, right})
	}
	for i, s := range t.added {
		file.AddedTokens[i] = addedJSON{ID: int32(t.plain + i), Content: s}
	}
	for id, piece := range t.pieces[:t.plain] {
		file.Model.Vocab[spelt(piece)] = int32(id)
	}
	config := configJSON{TokenizerClass: "PreTrainedTokenizerFast", ModelMaxLength: unboundedLength}
	if _, ok := t.ids[EndOfTurn]; ok {
		config.EOSToken, config.PadToken = EndOfTurn, EndOfTurn
	}
	return map[string][]byte{
		"tokenizer.json":        encodeJSON(file),
		"tokenizer_config.json": encodeJSON(config),
	}
}

func encodeJSON(v any) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(v); err != nil {
		panic(fmt.Sprintf("encode a tokenizer file: %v", err)) // the types above always encode
	}
	return b.Bytes()
}

// Load reads a tokenizer.json of the form that Files writes. It rejects any other form.
func Load(tokenizerJSON []byte) (*Tokenizer, error) {
	var file fileJSON
	if err := json.Unmarshal(tokenizerJSON, &file); err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", badinput.JSON(err))
	}
	if err := checkModel(file); err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	pairs, err := file.Model.pairs()
	if err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	plain := byteTokens + len(pairs)
	slices.SortFunc(file.AddedTokens, func(a, b addedJSON) int { return cmp.Compare(a.ID, b.ID) })
	added := make([]string, len(file.AddedTokens))
	for i, a := range file.AddedTokens {
		if int(a.ID) != plain+i {
			return nil, fmt.Errorf(
				"read tokenizer.json: added token %q: id %d where %d is next", a.Content, a.ID, plain+i,
			)
		}
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return nil, fmt.Errorf(
				"read tokenizer.json: added token %q: single_word, lstrip, rstrip and normalized must be false",
				a.Content,
			)
		}
		added[i] = a.Content
	}
	t, err := newTokenizer(added, pairs)
	if err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	return t, nil
}

func checkModel(file fileJSON) error {
	m := file.Model
	if m.Type != "BPE" || len(m.Vocab) != byteTokens+len(m.Merges) {
		return fmt.Errorf("model is %s with %d symbols and %d merges; want BPE with %d symbols and one for each merge",
			m.Type, len(m.Vocab), len(m.Merges), byteTokens)
	}
	for b, r := range symbolOf {
		if id, ok := m.Vocab[string(r)]; !ok || int(id) != b {
			return fmt.Errorf("byte %d has id %d; want %d", b, id, b)
		}
	}
	if file.Normalizer != nil {
		return fmt.Errorf("a normalizer is set; want none")
	}
	for _, l := range []byteLevel{file.PreTokenizer, file.Decoder} {
		if l.Type != "ByteLevel" {
			return fmt.Errorf("pre-tokenizer or decoder is %s; want ByteLevel", l.Type)
		}
	}
	if file.PreTokenizer.AddPrefixSpace {
		return fmt.Errorf("pre-tokenizer adds a prefix space; want none")
	}
	if split := len(m.Merges) > 0; file.PreTokenizer.UseRegex != split {
		return fmt.Errorf("pre-tokenizer's use_regex is %v with %d merges; want %v", file.PreTokenizer.UseRegex,
			len(m.Merges), split)
	}
	return nil
}

// pairs reads the merges; merge r must make the token with id byteTokens+r.
func (m modelJSON) pairs() ([]pair, error) {
	var out []pair
	for i, merge := range m.Merges {
		left, right, ok := halves(merge)
		id, known := m.Vocab[left+right]
		l, isLeft := m.Vocab[left]
		r, isRight := m.Vocab[right]
		if !ok || !known || !isLeft || !isRight || int(id) != byteTokens+i || l >= id || r >= id {
			return nil, fmt.Errorf("merge %d (%v): want two earlier tokens that make the token with id %d", i, merge,
				byteTokens+i)
		}
		out = append(out, pair{l, r})
	}
	return out, nil
}

// halves returns the two tokens of a merge, which is text or a list.
func halves(merge any) (left, right string, ok bool) {
	switch m := merge.(type) {
	case string:
		return strings.Cut(m, " ")
	case []any:
		if len(m) == 2 {
			l, isLeft := m[0].(string)
			r, isRight := m[1].(string)
			return l, r, isLeft && isRight
		}
	}
	return "", "", false
}
