package tokenizer

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// EndOfTurn is the string whose token ends a response. The files name it as eos_token.
const EndOfTurn = "<|im_end|>"

// byteTokens is the number of byte tokens. The ids of merged tokens follow, then those of added tokens.
const byteTokens = 256

// errBadID says that an id is outside the vocabulary.
var errBadID = errors.New("token id outside the vocabulary")

// Tokenizer is immutable and safe for concurrent use.
type Tokenizer struct {
	pieces []string // the bytes of each id
	plain  int      // how many ids are byte tokens and merged tokens
	added  []string
	ids    map[string]int32 // of the added tokens
	trie   []trieNode       // node 0 is the root
	first  [byteTokens]bool // bytes that an added token begins with
	merges *merges          // nil if every byte is a token
}

// trieNode is one prefix of the added tokens.
type trieNode struct {
	next map[byte]int32
	id   int32 // −1 if no added token ends here
}

// New makes the tokenizer with the given strings as added tokens, in order. It rejects a string that Hugging Face's
// ByteLevel decoder would not reproduce.
func New(added []string) (*Tokenizer, error) { return newTokenizer(added, nil) }

// newTokenizer is New with merges of the byte tokens.
func newTokenizer(added []string, pairs []pair) (*Tokenizer, error) {
	t := &Tokenizer{
		plain: byteTokens + len(pairs),
		added: append([]string(nil), added...),
		ids:   make(map[string]int32, len(added)),
		trie:  []trieNode{{id: -1}},
	}
	for b := range byteTokens {
		t.pieces = append(t.pieces, string([]byte{byte(b)}))
	}
	for _, p := range pairs {
		t.pieces = append(t.pieces, t.pieces[p.left]+t.pieces[p.right])
	}
	if len(pairs) > 0 {
		t.merges = newMerges(pairs)
	}
	for i, s := range added {
		if err := checkAdded(s); err != nil {
			return nil, err
		}
		if _, dup := t.ids[s]; dup {
			return nil, fmt.Errorf("add token %q: given twice", s)
		}
		id := int32(t.plain + i)
		t.ids[s], t.first[s[0]] = id, true
		t.insert(s, id)
	}
	t.pieces = append(t.pieces, t.added...)
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

// Encode returns the ids of text: the longest added token at each position from the left, and the tokens of the text
// between added tokens.
func (t *Tokenizer) Encode(text string) []int32 {
	ids := make([]int32, 0, len(text))
	t.segments(text, func(plain string, added int32) {
		if t.merges != nil {
			ids = t.merges.encode(ids, plain)
		} else {
			for i := range len(plain) {
				ids = append(ids, int32(plain[i]))
			}
		}
		if added >= 0 {
			ids = append(ids, added)
		}
	})
	return ids
}

// segments cuts a text at its added tokens. It calls take with each piece of text and the added token after it, which
// is −1 at the end.
func (t *Tokenizer) segments(text string, take func(plain string, added int32)) {
	start := 0
	for i := 0; i < len(text); {
		id, n := int32(-1), 0
		if t.first[text[i]] {
			id, n = t.longest(text[i:])
		}
		if n == 0 {
			i++
			continue
		}
		take(text[start:i], id)
		i += n
		start = i
	}
	take(text[start:], -1)
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
		if id >= 0 && int(id) < len(t.pieces) {
			out = append(out, t.pieces[id]...)
		}
	}
	return string(out)
}

// Check returns an error if an id is outside the vocabulary.
func (t *Tokenizer) Check(ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= t.VocabSize() {
			return fmt.Errorf("check token %d: id %d of a vocabulary of %d: %w", i, id, t.VocabSize(), errBadID)
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
func (t *Tokenizer) VocabSize() int { return len(t.pieces) }

// Symbols returns the vocabulary by id as tokenizer.json spells it: plain tokens, which are the bytes and the merged
// tokens, in the byte-level alphabet, then the added tokens.
func (t *Tokenizer) Symbols() (all []string, plain int) {
	for _, piece := range t.pieces[:t.plain] {
		all = append(all, spelt(piece))
	}
	return append(all, t.added...), t.plain
}

// Added returns the added tokens, in the order of their ids.
func (t *Tokenizer) Added() []string { return append([]string(nil), t.added...) }

// Merges returns the merges in order, each as its two tokens in the byte-level alphabet with a space between them.
func (t *Tokenizer) Merges() []string {
	out := []string{}
	if t.merges == nil {
		return out
	}
	for _, p := range t.merges.pairs {
		out = append(out, spelt(t.pieces[p.left])+" "+spelt(t.pieces[p.right]))
	}
	return out
}

// ID returns the id of an added token.
func (t *Tokenizer) ID(added string) (int32, bool) {
	id, ok := t.ids[added]
	return id, ok
}
