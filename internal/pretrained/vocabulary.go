package pretrained

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// Vocabulary returns what a GGUF file holds of a model's tokenizer, which is one that this program makes or a published
// byte-level BPE. files are the small files of the model's folder by name.
func Vocabulary(files map[string][]byte) (gguf.Vocabulary, error) {
	text, ok := files[fileTokenizer]
	if !ok {
		return gguf.Vocabulary{}, errors.New("it has no tokenizer.json")
	}
	v, err := made(text)
	if err != nil {
		if v, err = published(text, files[fileTokenizerConfig]); err != nil {
			return v, err
		}
	}
	v.ChatTemplate, err = gguf.ChatTemplate(files)
	return v, err
}

// made is the vocabulary of a tokenizer that this program makes.
func made(text []byte) (gguf.Vocabulary, error) {
	t, err := tokenizer.Load(text)
	if err != nil {
		return gguf.Vocabulary{}, err
	}
	v := gguf.Vocabulary{Merges: t.Merges(), Split: "gpt-2", Start: -1}
	if len(v.Merges) == 0 {
		v.Split = tokenizer.GGUFBytes
	}
	var bytes int
	v.Tokens, bytes = t.Symbols()
	for id := bytes; id < len(v.Tokens); id++ {
		v.Added = append(v.Added, int32(id))
	}
	return v, nil
}

// published is the vocabulary of a published tokenizer.
func published(text, config []byte) (gguf.Vocabulary, error) {
	from, err := tokenizer.ReadVocabulary(text)
	if err != nil {
		return gguf.Vocabulary{}, err
	}
	v := gguf.Vocabulary{Tokens: from.Tokens, Added: from.Shown, Start: -1}
	if v.Split, err = from.GGUFKind(); err != nil {
		return v, err
	}
	shown := func(id int32) bool { return slices.Contains(from.Shown, id) }
	v.Marks = slices.DeleteFunc(slices.Clone(from.Added), shown)
	for _, m := range from.Merges {
		v.Merges = append(v.Merges, m[0]+" "+m[1])
	}
	first, err := startOf(config)
	for _, id := range from.Added {
		if first != "" && from.Tokens[id] == first {
			v.Start = id
		}
	}
	return v, err
}

// startOf is the token that begins a text, as tokenizer_config.json names it.
func startOf(config []byte) (string, error) {
	if config == nil {
		return "", nil
	}
	var fields struct {
		Token json.RawMessage `json:"bos_token"`
	}
	if err := json.Unmarshal(config, &fields); err != nil {
		return "", fmt.Errorf("read tokenizer_config.json: %w", badinput.JSON(err))
	}
	text, err := tokenText(fields.Token)
	if err != nil {
		return "", fmt.Errorf("read tokenizer_config.json: bos_token %w", err)
	}
	return text, nil
}
