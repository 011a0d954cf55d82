package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// The shapes of a published tokenizer.json, as far as they change ids.
type (
	publishedJSON struct {
		AddedTokens  []addedJSON     `json:"added_tokens"`
		Normalizer   *partJSON       `json:"normalizer"`
		PreTokenizer *partJSON       `json:"pre_tokenizer"`
		Decoder      *partJSON       `json:"decoder"`
		Model        json.RawMessage `json:"model"`
	}
	// partJSON is a normalizer, a pre-tokenizer or a decoder, or a sequence of them.
	partJSON struct {
		Type             string     `json:"type"`
		Normalizers      []partJSON `json:"normalizers"`
		PreTokenizers    []partJSON `json:"pretokenizers"`
		Pattern          struct{ Regex, String string }
		Content          string `json:"content"`
		Replacement      string `json:"replacement"`
		Prefix           string `json:"prepend_scheme"`
		Split            *bool  `json:"split"`
		Behavior         string `json:"behavior"`
		Invert           bool   `json:"invert"`
		AddPrefixSpace   *bool  `json:"add_prefix_space"`
		UseRegex         *bool  `json:"use_regex"`
		IndividualDigits bool   `json:"individual_digits"`
	}
)

// mostTokens bounds the ids of a file. The largest published vocabularies have some 260,000 tokens.
const mostTokens = 1 << 22

// LoadPublished reads the tokenizer.json of a published byte-level BPE or Unigram vocabulary. It refuses by name what
// it does not know, because a tokenizer that is almost right gives a model other tokens than those it was trained on.
func LoadPublished(tokenizerJSON []byte) (*Published, error) {
	var file publishedJSON
	if err := json.Unmarshal(tokenizerJSON, &file); err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", badinput.JSON(err))
	}
	t, err := file.tokenizer()
	if err != nil {
		return nil, fmt.Errorf("read tokenizer.json: %w", err)
	}
	return t, nil
}

// ReadVocabulary reads the vocabulary of a published byte-level BPE's tokenizer.json.
func ReadVocabulary(tokenizerJSON []byte) (Vocabulary, error) {
	var file publishedJSON
	err := json.Unmarshal(tokenizerJSON, &file)
	var kind struct{ Type string }
	if err == nil {
		err = json.Unmarshal(file.Model, &kind)
	}
	if err == nil && kind.Type != "BPE" {
		err = fmt.Errorf("model %s is not supported; want a byte-level BPE", kind.Type)
	}
	var v Vocabulary
	if err == nil {
		v, err = file.vocabulary()
	}
	if err != nil {
		return Vocabulary{}, fmt.Errorf("read tokenizer.json: %w", badinput.JSON(err))
	}
	return v, nil
}

func (f publishedJSON) tokenizer() (*Published, error) {
	var kind struct{ Type string }
	if err := json.Unmarshal(f.Model, &kind); err != nil {
		return nil, badinput.JSON(err)
	}
	if kind.Type == "Unigram" {
		return f.unigram()
	}
	v, err := f.vocabulary()
	if err != nil {
		return nil, err
	}
	return NewPublished(v)
}

func (f publishedJSON) vocabulary() (v Vocabulary, err error) {
	var model modelJSON
	if err = json.Unmarshal(f.Model, &model); err != nil {
		return v, badinput.JSON(err)
	}
	if err = model.supported(); err != nil {
		return v, err
	}
	v.WholeWords = model.IgnoreMerges
	if v.NFC, err = f.Normalizer.nfc(); err != nil {
		return v, err
	}
	if err = f.PreTokenizer.split(&v); err != nil {
		return v, err
	}
	if f.Decoder == nil || f.Decoder.Type != "ByteLevel" {
		return v, fmt.Errorf("only the decoder ByteLevel is supported")
	}
	put := func(id int32, token string) error {
		if id < 0 || id >= mostTokens {
			return fmt.Errorf("token %q: id %d is not between 0 and %d", token, id, mostTokens-1)
		}
		for int(id) >= len(v.Tokens) {
			v.Tokens = append(v.Tokens, "")
		}
		if old := v.Tokens[id]; old != "" && old != token {
			return fmt.Errorf("id %d is given to %q and to %q", id, old, token)
		}
		v.Tokens[id] = token
		return nil
	}
	for token, id := range model.Vocab {
		if err = put(id, token); err != nil {
			return v, err
		}
	}
	for _, a := range f.AddedTokens {
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized && v.NFC {
			return v, fmt.Errorf("added token %q: single_word, lstrip, rstrip and normalized are not supported",
				a.Content)
		}
		if a.Normalized != f.AddedTokens[0].Normalized {
			return v, fmt.Errorf("added token %q: normalized differs between added tokens", a.Content)
		}
		if err = put(a.ID, a.Content); err != nil {
			return v, err
		}
		v.Added = append(v.Added, a.ID)
		if !a.Special {
			v.Shown = append(v.Shown, a.ID)
		}
	}
	for i, m := range model.Merges {
		left, right, ok := halves(m)
		if !ok {
			return v, fmt.Errorf("merge %d (%v) is not two tokens", i, m)
		}
		v.Merges = append(v.Merges, [2]string{left, right})
	}
	return v, nil
}

func (m modelJSON) supported() error {
	if m.Type != "BPE" {
		return fmt.Errorf("model %s is not supported; want a byte-level BPE", m.Type)
	}
	for _, f := range []struct {
		name string
		set  any
	}{{"dropout", m.Dropout}, {"unk_token", m.UnkToken}, {"continuing_subword_prefix", m.ContinuingSubwordPrefix},
		{"end_of_word_suffix", m.EndOfWordSuffix}} {
		if f.set != nil && f.set != "" {
			return fmt.Errorf("model's %s is not supported", f.name)
		}
	}
	if m.ByteFallback {
		return fmt.Errorf("model's byte_fallback is not supported")
	}
	return nil
}

// nfc reads a normalizer: none, or NFC.
func (p *partJSON) nfc() (bool, error) {
	switch {
	case p == nil:
		return false, nil
	case p.Type == "NFC":
		return true, nil
	case p.Type == "Sequence" && len(p.Normalizers) == 0:
		return false, nil
	case p.Type == "Sequence" && len(p.Normalizers) == 1:
		return p.Normalizers[0].nfc()
	}
	return false, fmt.Errorf("normalizer %s is not supported", p.Type)
}

// split reads a pre-tokenizer: perhaps single digits, then a pattern, then the byte-level alphabet.
func (p *partJSON) split(v *Vocabulary) error {
	if p == nil {
		return fmt.Errorf("a file without pre-tokenizer is not supported")
	}
	parts := []partJSON{*p}
	if p.Type == "Sequence" {
		parts = p.PreTokenizers
	}
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part.Type == "Digits" && part.IndividualDigits && i == 0 && !last:
			v.Digits = true
		case part.Type == "Split" && v.Pattern == "" && part.Behavior == "Isolated" && !part.Invert && !last:
			v.Pattern = part.Pattern.Regex
		case part.Type == "ByteLevel" && last && (part.AddPrefixSpace == nil || !*part.AddPrefixSpace):
			byPattern := part.UseRegex == nil || *part.UseRegex
			if byPattern == (v.Pattern != "") {
				return fmt.Errorf("pre-tokenizer splits by two patterns or by none, which is not supported")
			}
			if byPattern {
				v.Pattern = gpt2Pattern
			}
		default:
			return fmt.Errorf("pre-tokenizer %d (%s) is not supported with these settings", i, part.Type)
		}
	}
	if v.Pattern == "" {
		return fmt.Errorf("pre-tokenizer names no pattern")
	}
	return nil
}
