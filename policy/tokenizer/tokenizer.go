package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// EndOfTurn is the string whose token ends a response. The files name it as eos_token.
const EndOfTurn = "<|im_end|>"

// byteTokens is the number of byte tokens. The ids of added tokens follow.
const byteTokens = 256

// ErrBadID says that an id is outside the vocabulary.
var ErrBadID = errors.New("token id outside the vocabulary")

// Tokenizer is immutable and safe for concurrent use.
type Tokenizer struct {
	added []string
	ids   map[string]int32
	trie  []trieNode // node 0 is the root
}

// trieNode is one prefix of the added tokens.
type trieNode struct {
	next map[byte]int32
	id   int32 // −1 if no added token ends here
}

// New makes the tokenizer with the given strings as added tokens, in order. It rejects a string that Hugging Face's
// ByteLevel decoder would not reproduce.
func New(added []string) (*Tokenizer, error) {
	t := &Tokenizer{
		added: append([]string(nil), added...),
		ids:   make(map[string]int32, len(added)),
		trie:  []trieNode{{id: -1}},
	}
	for i, s := range added {
		if err := checkAdded(s); err != nil {
			return nil, err
		}
		if _, dup := t.ids[s]; dup {
			return nil, fmt.Errorf("add token %q: given twice", s)
		}
		id := int32(byteTokens + i)
		t.ids[s] = id
		t.insert(s, id)
	}
	return t, nil
}

func checkAdded(s string) error {
	if utf8.RuneCountInString(s) < 2 {
		return fmt.Errorf("add token %q: want at least two characters", s)
	}
	if !utf8.ValidString(s) {
		return fmt.Errorf("add token %q: not valid UTF-8", s)
	}
	ascii, symbols := true, true
	for _, r := range s {
		_, isSymbol := symbolByte[r]
		symbols = symbols && isSymbol
		ascii = ascii && r < utf8.RuneSelf
	}
	if symbols && !ascii {
		// ByteLevel would read each character as the byte that it represents.
		return fmt.Errorf("add token %q: spelt in the byte-level alphabet alone", s)
	}
	return nil
}

func (t *Tokenizer) insert(s string, id int32) {
	node := int32(0)
	for i := 0; i < len(s); i++ {
		next, ok := t.trie[node].next[s[i]]
		if !ok {
			next = int32(len(t.trie))
			t.trie = append(t.trie, trieNode{id: -1})
			if t.trie[node].next == nil {
				t.trie[node].next = map[byte]int32{}
			}
			t.trie[node].next[s[i]] = next
		}
		node = next
	}
	t.trie[node].id = id
}

// Encode returns the ids of text: the longest added token at each position from the left, byte tokens otherwise.
func (t *Tokenizer) Encode(text string) []int32 {
	ids := make([]int32, 0, len(text))
	for i := 0; i < len(text); {
		id, n := t.longest(text[i:])
		if n == 0 {
			id, n = int32(text[i]), 1
		}
		ids = append(ids, id)
		i += n
	}
	return ids
}

// longest returns the longest added token at the start of text and its length, or length 0 if there is none.
func (t *Tokenizer) longest(text string) (id int32, length int) {
	node := int32(0)
	for i := 0; i < len(text); i++ {
		next, ok := t.trie[node].next[text[i]]
		if !ok {
			break
		}
		node = next
		if t.trie[node].id >= 0 {
			id, length = t.trie[node].id, i+1
		}
	}
	return id, length
}

// Decode returns the exact bytes of ids, which need not be valid UTF-8. It ignores an id outside the vocabulary; Check
// finds such ids.
func (t *Tokenizer) Decode(ids []int32) string {
	out := make([]byte, 0, len(ids)*2)
	for _, id := range ids {
		switch {
		case id >= 0 && id < byteTokens:
			out = append(out, byte(id))
		case id >= byteTokens && int(id) < t.VocabSize():
			out = append(out, t.added[id-byteTokens]...)
		}
	}
	return string(out)
}

// Check returns ErrBadID if an id is outside the vocabulary.
func (t *Tokenizer) Check(ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= t.VocabSize() {
			return fmt.Errorf("check token %d: id %d of a vocabulary of %d: %w", i, id, t.VocabSize(), ErrBadID)
		}
	}
	return nil
}

// Pieces returns the text of each id, to show how a text was split.
func (t *Tokenizer) Pieces(ids []int32) []string {
	out := make([]string, len(ids))
	for i := range ids {
		out[i] = t.Decode(ids[i : i+1])
	}
	return out
}

// VocabSize is the number of ids: 0 ≤ id < VocabSize.
func (t *Tokenizer) VocabSize() int { return byteTokens + len(t.added) }

// Symbols returns the vocabulary by id as tokenizer.json spells it: the character that represents each byte in the
// byte-level alphabet, then the added tokens.
func (t *Tokenizer) Symbols() (all []string, bytes int) {
	for _, r := range symbolOf {
		all = append(all, string(r))
	}
	return append(all, t.added...), byteTokens
}

// ID returns the id of an added token.
func (t *Tokenizer) ID(added string) (int32, bool) {
	id, ok := t.ids[added]
	return id, ok
}
