package tokenizer

import (
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/badinput"
)

// unigramJSON is the model of a tokenizer.json that holds a Unigram vocabulary.
type unigramJSON struct {
	Unknown      *int32               `json:"unk_id"`
	Vocab        [][2]json.RawMessage `json:"vocab"` // text and score
	ByteFallback bool                 `json:"byte_fallback"`
}

// unigram makes the tokenizer of a file that holds a Unigram vocabulary.
func (f publishedJSON) unigram() (*Published, error) {
	var model unigramJSON
	if err := json.Unmarshal(f.Model, &model); err != nil {
		return nil, badinput.JSON(err)
	}
	p := Pieces{Unknown: -1, ByteFallback: model.ByteFallback, Space: "\u2581", Prefix: "never"}
	if model.Unknown != nil {
		p.Unknown = *model.Unknown
	}
	if len(model.Vocab) > mostTokens {
		return nil, fmt.Errorf("the vocabulary has %d tokens, more than %d", len(model.Vocab), mostTokens)
	}
	p.Tokens, p.Scores = make([]string, len(model.Vocab)), make([]float64, len(model.Vocab))
	for id, entry := range model.Vocab {
		if err := json.Unmarshal(entry[0], &p.Tokens[id]); err != nil {
			return nil, fmt.Errorf("token %d: %w", id, badinput.JSON(err))
		}
		if err := json.Unmarshal(entry[1], &p.Scores[id]); err != nil {
			return nil, fmt.Errorf("score of token %d: %w", id, badinput.JSON(err))
		}
	}
	for _, a := range f.AddedTokens {
		if a.SingleWord || a.LStrip || a.RStrip || a.Normalized {
			return nil, fmt.Errorf("added token %q: single_word, lstrip, rstrip and normalized are not supported",
				a.Content)
		}
		if a.ID < 0 || a.ID >= mostTokens {
			return nil, fmt.Errorf("token %q: id %d is not between 0 and %d", a.Content, a.ID, mostTokens-1)
		}
		for int(a.ID) >= len(p.Tokens) {
			p.Tokens = append(p.Tokens, "")
		}
		if old := p.Tokens[a.ID]; old != "" && old != a.Content {
			return nil, fmt.Errorf("id %d is given to %q and to %q", a.ID, old, a.Content)
		}
		p.Tokens[a.ID] = a.Content
		p.Added = append(p.Added, a.ID)
	}
	var err error
	if p.Normalize, err = f.Normalizer.changes(); err != nil {
		return nil, err
	}
	if err := f.PreTokenizer.spaces(&p); err != nil {
		return nil, err
	}
	return newUnigram(p)
}

// spaces reads how a text is split before it is cut into pieces.
func (p *partJSON) spaces(to *Pieces) error {
	if p == nil {
		return nil
	}
	parts := []partJSON{*p}
	if p.Type == "Sequence" {
		parts = p.PreTokenizers
	}
	for i, part := range parts {
		last := i == len(parts)-1
		switch {
		case part.Type == "WhitespaceSplit" && i == 0 && !last:
			to.Whites = true
		case part.Type == "Metaspace" && last && part.Replacement != "":
			to.Space, to.Words, to.Prefix = part.Replacement, part.Split == nil || *part.Split, part.Prefix
			if to.Prefix == "" { // files of early versions
				to.Prefix = "always"
				if part.AddPrefixSpace != nil && !*part.AddPrefixSpace {
					to.Prefix = "never"
				}
			}
		default:
			return fmt.Errorf("pre-tokenizer %d (%s) of a Unigram vocabulary is not supported", i, part.Type)
		}
	}
	return nil
}
