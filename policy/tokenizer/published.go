package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Vocabulary is what a published byte-level BPE consists of, whatever file it comes from.
type Vocabulary struct {
	// Tokens are the tokens by id: plain ones in the byte-level alphabet, added ones as they are written. An id
	// without a token has "".
	Tokens []string
	// Added are the ids of the added tokens, and Shown those among them that are text, such as tags, and not marks of
	// the template.
	Added, Shown []int32
	// Merges are pairs of plain tokens, in the order in which they apply.
	Merges [][2]string
	// Pattern is the regular expression that splits a text into words. Only listed patterns are known.
	Pattern string
	// Digits says that every digit is a word of its own, before the pattern is applied.
	Digits bool
	// NFC says that a text is brought to Unicode's normal form C first; added tokens are found before that.
	NFC bool
	// WholeWords says that a word which is a token is not split.
	WholeWords bool
}

// Published is the tokenizer of a published model. Its ids equal those of Hugging Face's tokenizers. It is safe for
// concurrent use.
type Published struct {
	added  *Tokenizer // finds the added tokens; its ids are positions in ids
	ids    []int32    // of the added tokens
	pieces []string   // the bytes of each id
	merges *merges    // nil if the model is a Unigram
	likely *unigram   // nil if the model is a byte-level BPE
	nfc    bool
	lacks  bool // the vocabulary lacks bytes
}

// NewPublished makes the tokenizer of a vocabulary. It rejects a vocabulary whose parts do not fit together.
func NewPublished(v Vocabulary) (*Published, error) {
	length, ok := patterns[v.Pattern]
	if !ok {
		return nil, fmt.Errorf("make a tokenizer: splitting by the pattern %q is not supported", v.Pattern)
	}
	t := &Published{pieces: make([]string, len(v.Tokens)), nfc: v.NFC}
	isAdded, err := t.findAdded(v.Tokens, v.Added)
	if err != nil {
		return nil, err
	}
	plain := make(map[string]int32, len(v.Tokens))
	for id, s := range v.Tokens {
		if isAdded[id] {
			t.pieces[id] = s
			continue
		}
		if s == "" {
			continue
		}
		if _, dup := plain[s]; dup {
			return nil, fmt.Errorf("make a tokenizer: token %q is given twice", s)
		}
		plain[s] = int32(id)
		if t.pieces[id], ok = unspelt(s); !ok {
			return nil, fmt.Errorf("make a tokenizer: token %d (%q) is not in the byte-level alphabet", id, s)
		}
	}
	m, err := publishedMerges(v, plain)
	if err != nil {
		return nil, err
	}
	m.length, m.digits, t.merges = length, v.Digits, m
	for _, id := range m.start {
		t.lacks = t.lacks || id < 0
	}
	if v.WholeWords {
		m.whole = make(map[string]int32, len(plain))
		for _, id := range plain {
			m.whole[t.pieces[id]] = id
		}
	}
	return t, nil
}

// findAdded takes the added tokens of a vocabulary, and returns which ids they have.
func (t *Published) findAdded(tokens []string, added []int32) (isAdded []bool, err error) {
	isAdded = make([]bool, len(tokens))
	var texts []string
	for _, id := range added {
		if id < 0 || int(id) >= len(tokens) || tokens[id] == "" || isAdded[id] {
			return nil, fmt.Errorf("make a tokenizer: added token %d is empty, outside the vocabulary or given twice",
				id)
		}
		isAdded[id] = true
		texts, t.ids = append(texts, tokens[id]), append(t.ids, id)
	}
	t.added = finder(texts)
	if len(t.added.ids) != len(texts) {
		return nil, fmt.Errorf("make a tokenizer: two added tokens have the same text")
	}
	return isAdded, nil
}

// finder returns a tokenizer that only finds added tokens. Unlike New, it takes any text.
func finder(texts []string) *Tokenizer {
	t := &Tokenizer{added: texts, ids: map[string]int32{}, trie: []trieNode{{id: -1}}}
	for i, s := range texts {
		t.ids[s], t.first[s[0]] = int32(i), true
		t.insert(s, int32(i))
	}
	return t
}

func publishedMerges(v Vocabulary, plain map[string]int32) (*merges, error) {
	m := &merges{rank: make(map[pair]merge, len(v.Merges)), words: map[string][]int32{}}
	for b, r := range symbolOf {
		m.start[b] = -1
		if id, ok := plain[string(r)]; ok {
			m.start[b] = id
		}
	}
	for i, halves := range v.Merges {
		left, isLeft := plain[halves[0]]
		right, isRight := plain[halves[1]]
		id, known := plain[halves[0]+halves[1]]
		if !isLeft || !isRight || !known {
			return nil, fmt.Errorf("make a tokenizer: merge %d (%q) has a part or a result that is no plain token",
				i, halves)
		}
		p := pair{left, right}
		m.pairs = append(m.pairs, p)
		m.rank[p] = merge{int32(i), id}
	}
	return m, nil
}

// unspelt reads text in the byte-level alphabet.
func unspelt(text string) (string, bool) {
	out := make([]byte, 0, len(text))
	for _, r := range text {
		b, ok := symbolByte[r]
		if !ok {
			return "", false
		}
		out = append(out, b)
	}
	return string(out), true
}

// Encode returns the ids of a text in which added tokens count as tokens: a text that the program itself wrote.
func (t *Published) Encode(text string) []int32 {
	ids := make([]int32, 0, len(text)/3+1)
	first := true // the text begins here
	t.added.segments(text, func(plain string, added int32) {
		ids = t.plain(ids, plain, first)
		first = false
		if added >= 0 {
			ids = append(ids, t.ids[added])
		}
	})
	return ids
}

// plain appends the ids of a text without added tokens. A vocabulary that lacks bytes cannot represent text that is not
// UTF-8, so there each wrong byte becomes U+FFFD, as Python's errors="replace" has it for single bytes.
func (t *Published) plain(ids []int32, text string, first bool) []int32 {
	if t.likely != nil {
		return t.likely.encode(ids, text, first)
	}
	if t.lacks && !utf8.ValidString(text) {
		text = strings.Map(func(r rune) rune { return r }, text)
	}
	if t.nfc {
		text = norm.NFC.String(text)
	}
	return t.merges.encode(ids, text)
}

// Decode returns the bytes of ids, added tokens included. It ignores an id outside the vocabulary; Check finds such
// ids.
func (t *Published) Decode(ids []int32) string {
	var out strings.Builder
	for _, id := range ids {
		if id >= 0 && int(id) < len(t.pieces) {
			out.WriteString(t.pieces[id])
		}
	}
	return out.String()
}

// Check returns an error if an id is outside the vocabulary.
func (t *Published) Check(ids []int32) error {
	for i, id := range ids {
		if id < 0 || int(id) >= len(t.pieces) {
			return fmt.Errorf("check token %d: id %d of a vocabulary of %d: %w", i, id, len(t.pieces), errBadID)
		}
	}
	return nil
}

// VocabSize is the number of ids: 0 ≤ id < VocabSize.
func (t *Published) VocabSize() int { return len(t.pieces) }

// Added returns the added tokens.
func (t *Published) Added() []string { return append([]string(nil), t.added.added...) }

// Padded returns the tokenizer with ids up to size, which a model's embedding may have beyond its tokens. Those have
// no text. It refuses a model that has fewer ids than the tokenizer.
func (t *Published) Padded(size int) (*Published, error) {
	if size < len(t.pieces) {
		return nil, fmt.Errorf("the tokenizer has %d tokens, and the model's vocab_size is %d", len(t.pieces), size)
	}
	padded := *t
	padded.pieces = append(t.pieces[:len(t.pieces):len(t.pieces)], make([]string, size-len(t.pieces))...)
	return &padded, nil
}

// ID returns the id of an added token.
func (t *Published) ID(added string) (int32, bool) {
	i, ok := t.added.ids[added]
	if !ok {
		return 0, false
	}
	return t.ids[i], true
}
