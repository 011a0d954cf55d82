package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// Entries are the metadata of a GGUF file.
type Entries interface {
	// Text returns an entry that is text; ok is false if the file has no such entry, here and below.
	Text(key string) (text string, ok bool)
	// Texts returns an entry that is a list of texts.
	Texts(key string) (texts []string, ok bool)
	// Wholes returns an entry that is a list of whole numbers.
	Wholes(key string) (numbers []int64, ok bool)
}

// Types of tokens in a GGUF file.
const (
	ggufNormal  = 1
	ggufControl = 3
	ggufOwn     = 4 // defined by the user
	ggufUnused  = 5
)

// ggufKinds are the vocabularies that GGUF files name in tokenizer.ggml.pre. The first name of a vocabulary is written.
var ggufKinds = []struct {
	name string
	kind Vocabulary
}{
	{"gpt-2", Vocabulary{Pattern: gpt2Pattern}},
	{"smollm", Vocabulary{Pattern: gpt2Pattern, Digits: true}},
	{"llama-bpe", Vocabulary{Pattern: llama3Pattern, WholeWords: true}},
	{"llama3", Vocabulary{Pattern: llama3Pattern, WholeWords: true}},
	{"qwen2", Vocabulary{Pattern: qwenPattern, NFC: true}},
}

// GGUFBytes is what GGUF files name in tokenizer.ggml.pre where nothing is merged: it then does not matter where a text
// is split. Policies that this program makes have such a vocabulary, unless a tokenizer was trained for them.
const GGUFBytes = "default"

// GGUFKind returns the name that GGUF files have for the way a vocabulary splits text.
func (v Vocabulary) GGUFKind() (string, error) {
	for _, k := range ggufKinds {
		if k.kind.Pattern == v.Pattern && k.kind.Digits == v.Digits && k.kind.NFC == v.NFC &&
			k.kind.WholeWords == v.WholeWords {
			return k.name, nil
		}
	}
	return "", fmt.Errorf("GGUF has no name for the way in which this tokenizer splits text (pattern %q)", v.Pattern)
}

// ggufKind returns the vocabulary, without tokens, that a name in a GGUF file means.
func ggufKind(name string) (Vocabulary, bool) {
	for _, k := range ggufKinds {
		if k.name == name {
			return k.kind, true
		}
	}
	return Vocabulary{}, false
}

// GGUFVocabulary reads the vocabulary of a GGUF file. It refuses by name what it does not know.
func GGUFVocabulary(file Entries) (v Vocabulary, err error) {
	if model, _ := file.Text("tokenizer.ggml.model"); model != "gpt2" {
		return v, fmt.Errorf("tokenizer.ggml.model %q is not supported; want gpt2, a byte-level BPE", model)
	}
	kind, _ := file.Text("tokenizer.ggml.pre")
	tokens, _ := file.Texts("tokenizer.ggml.tokens")
	types, _ := file.Wholes("tokenizer.ggml.token_type")
	merges, _ := file.Texts("tokenizer.ggml.merges")
	v, ok := ggufKind(kind)
	bytes := kind == GGUFBytes && len(merges) == 0
	if bytes {
		v, ok = Vocabulary{Pattern: gpt2Pattern}, true
	}
	if !ok {
		return v, fmt.Errorf("tokenizer.ggml.pre %q is not supported", kind)
	}
	if len(tokens) == 0 || len(tokens) != len(types) || len(merges) == 0 && !bytes {
		return v, fmt.Errorf("%d tokens, %d token types and %d merges do not fit", len(tokens), len(types), len(merges))
	}
	v.Tokens = slices.Clone(tokens)
	for id, t := range types {
		switch t {
		case ggufNormal:
		case ggufControl, ggufOwn:
			v.Added = append(v.Added, int32(id))
			if t == ggufOwn {
				v.Shown = append(v.Shown, int32(id))
			}
		case ggufUnused:
			v.Tokens[id] = ""
		default:
			return v, fmt.Errorf("token %d has type %d, which a byte-level BPE has not", id, t)
		}
	}
	for i, m := range merges {
		left, right, ok := strings.Cut(m, " ")
		if !ok {
			return v, fmt.Errorf("merge %d (%q) is not two tokens", i, m)
		}
		v.Merges = append(v.Merges, [2]string{left, right})
	}
	return v, nil
}
