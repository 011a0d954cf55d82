package tokenizer

import (
	"fmt"
	"math"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Pieces is what a published Unigram vocabulary consists of (Kudo 2018): of all ways to split a text into pieces it
// takes the likeliest. Source: the behaviour of Hugging Face's tokenizers, which is that of SentencePiece.
type Pieces struct {
	// Tokens are the pieces by id, with Space in the place of spaces, and the added tokens as they are written. An id
	// without a token has "".
	Tokens []string
	// Scores are the logarithms of the pieces' probabilities, by id.
	Scores []float64
	// Added are the ids of the added tokens.
	Added []int32
	// Unknown is the piece that stands for characters that no piece has; −1 if there is none.
	Unknown int32
	// ByteFallback says that a character that no piece has becomes the pieces <0x00> … <0xFF> of its bytes.
	ByteFallback bool
	// Normalize are the changes of a text before it is split, in order.
	Normalize []func(string) string
	// Space is the character that stands for a space, U+2581 in most vocabularies.
	Space string
	// Prefix says where a text that begins with no space gets one: always, first (only where the whole text begins) or
	// never.
	Prefix string
	// Words says that the text is split before each space, and Whites that it is also split at white space, which is
	// left out.
	Words, Whites bool
}

// unknownPenalty lowers the score of an unknown character below that of the unlikeliest piece.
const unknownPenalty = 10

// unigram finds the likeliest split of a text.
type unigram struct {
	Pieces
	trie    []trieNode
	unknown float64           // score of an unknown character
	bytes   [byteTokens]int32 // the pieces of bytes; −1 where there is none
	fused   map[string]int32  // pieces by text
}

// newUnigram makes the tokenizer of a Unigram vocabulary. It rejects a vocabulary whose parts do not fit together.
func newUnigram(p Pieces) (*Published, error) {
	if len(p.Scores) > len(p.Tokens) || int(p.Unknown) >= len(p.Scores) || p.Space == "" {
		return nil, fmt.Errorf("make a tokenizer: %d tokens, %d scores, unknown piece %d and space %q do not fit",
			len(p.Tokens), len(p.Scores), p.Unknown, p.Space)
	}
	t := &Published{pieces: make([]string, len(p.Tokens))}
	isAdded, err := t.findAdded(p.Tokens, p.Added)
	if err != nil {
		return nil, err
	}
	u := &unigram{Pieces: p, trie: []trieNode{{id: -1}}, fused: map[string]int32{}}
	for b := range u.bytes {
		u.bytes[b] = -1
	}
	finds := &Tokenizer{trie: u.trie}
	least := math.Inf(1)
	for id, s := range p.Tokens {
		t.pieces[id] = strings.ReplaceAll(s, p.Space, " ")
		if isAdded[id] {
			t.pieces[id] = s
		}
		if id >= len(p.Scores) || s == "" {
			continue
		}
		least = min(least, p.Scores[id])
		if _, ok := t.added.ids[s]; ok { // no piece may be read as an added token; trainers make some that could
			continue
		}
		u.fused[s] = int32(id)
		finds.insert(s, int32(id))
		if b, ok := byteOf(s); ok && p.ByteFallback {
			u.bytes[b], t.pieces[id] = int32(id), string([]byte{b})
		}
	}
	u.trie, u.unknown, t.likely = finds.trie, least-unknownPenalty, u
	return t, nil
}

// byteOf reads the piece of a byte, such as <0x0A>.
func byteOf(piece string) (byte, bool) {
	var b byte
	if len(piece) != len("<0x00>") {
		return 0, false
	}
	_, err := fmt.Sscanf(piece, "<0x%02X>", &b)
	return b, err == nil && fmt.Sprintf("<0x%02X>", b) == piece
}

// encode appends the ids of a text without added tokens. first says that the whole text begins here.
func (u *unigram) encode(ids []int32, text string, first bool) []int32 {
	text = strings.ToValidUTF8(text, "\uFFFD")
	for _, change := range u.Normalize {
		text = change(text)
	}
	parts := []string{text}
	if u.Whites {
		parts = strings.FieldsFunc(text, unicode.IsSpace)
	}
	for i, part := range parts {
		if part == "" {
			continue
		}
		part = strings.ReplaceAll(part, " ", u.Space)
		begins := first && i == 0 && strings.HasPrefix(text, parts[0])
		if (u.Prefix == "always" || u.Prefix == "first" && begins) && !strings.HasPrefix(part, u.Space) {
			part = u.Space + part
		}
		for part != "" {
			n := u.word(part)
			ids = u.split(ids, part[:n])
			part = part[n:]
		}
	}
	return ids
}

// word is the length of the first word of a text: up to the next space, which begins the next word.
func (u *unigram) word(text string) int {
	if !u.Words {
		return len(text)
	}
	begin := 0
	if strings.HasPrefix(text, u.Space) {
		begin = len(u.Space)
	}
	if next := strings.Index(text[begin:], u.Space); next >= 0 {
		return begin + next
	}
	return len(text)
}

// split appends the pieces of the likeliest split (Viterbi's algorithm over the ends of pieces). Of equally likely
// splits it takes the one whose last piece begins first.
func (u *unigram) split(ids []int32, text string) []int32 {
	type end struct {
		id, from int
		score    float64
	}
	ends := make([]end, len(text)+1)
	for i := range ends {
		ends[i].from = -1
	}
	for at := 0; at < len(text); {
		_, width := utf8.DecodeRuneInString(text[at:])
		single := false
		node := int32(0)
		for i := at; i < len(text); i++ {
			next, ok := u.trie[node].next[text[i]]
			if !ok {
				break
			}
			node = next
			id := u.trie[node].id
			if id < 0 {
				continue
			}
			if to, score := &ends[i+1], u.Scores[id]+ends[at].score; to.from < 0 || score > to.score {
				*to = end{int(id), at, score}
			}
			single = single || i+1-at == width
		}
		if !single {
			if to, score := &ends[at+width], u.unknown+ends[at].score; to.from < 0 || score > to.score {
				*to = end{int(u.Unknown), at, score}
			}
		}
		at += width
	}
	var pieces []int32 // from the last to the first
	for at := len(text); at > 0; {
		e, from := ends[at], ends[at].from
		if e.id == int(u.Unknown) { // unknown characters that follow each other are one piece
			for from > 0 && ends[from].id == int(u.Unknown) {
				from = ends[from].from
			}
			pieces = u.strange(pieces, text[from:at])
		} else {
			pieces = append(pieces, int32(e.id))
		}
		at = from
	}
	for i := len(pieces) - 1; i >= 0; i-- {
		ids = append(ids, pieces[i])
	}
	return ids
}

// strange appends what stands for characters that no piece has, the last first.
func (u *unigram) strange(pieces []int32, text string) []int32 {
	if id, ok := u.fused[text]; ok {
		return append(pieces, id)
	}
	if u.ByteFallback {
		var spelt []int32
		for i := len(text) - 1; i >= 0; i-- {
			if id := u.bytes[text[i]]; id >= 0 {
				spelt = append(spelt, id)
			}
		}
		if len(spelt) == len(text) {
			return append(pieces, spelt...)
		}
	}
	if u.Unknown < 0 {
		return pieces
	}
	return append(pieces, u.Unknown)
}

// changes returns the changes of a normalizer, or an error that says what is not supported.
func (p *partJSON) changes() (out []func(string) string, err error) {
	if p == nil {
		return nil, nil
	}
	switch p.Type {
	case "Sequence":
		for i := range p.Normalizers {
			some, err := p.Normalizers[i].changes()
			if err != nil {
				return nil, err
			}
			out = append(out, some...)
		}
		return out, nil
	case "NFC", "NFD", "NFKC", "NFKD":
		form := map[string]norm.Form{"NFC": norm.NFC, "NFD": norm.NFD, "NFKC": norm.NFKC, "NFKD": norm.NFKD}[p.Type]
		return []func(string) string{form.String}, nil
	case "Nmt":
		return []func(string) string{nmt}, nil
	case "Replace":
		switch {
		case p.Pattern.Regex == " {2,}":
			many := regexp.MustCompile(p.Pattern.Regex)
			return []func(string) string{func(s string) string {
				return many.ReplaceAllLiteralString(s, p.Content)
			}}, nil
		case p.Pattern.String != "" && p.Pattern.Regex == "":
			return []func(string) string{func(s string) string {
				return strings.ReplaceAll(s, p.Pattern.String, p.Content)
			}}, nil
		}
	}
	return nil, fmt.Errorf("normalizer %s is not supported with these settings", p.Type)
}

// nmt drops control characters and makes other white space and marks of bytes' order spaces (SentencePiece's rule nmt).
func nmt(text string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 1 && r <= 8, r == 0xb, r >= 0xe && r <= 0x1f, r == 0x7f, r == 0x8f, r == 0x9f:
			return -1
		case r == 9, r == 0xa, r == 0xc, r == 0xd, r == 0x1680, r >= 0x200b && r <= 0x200f, r == 0x2028, r == 0x2029,
			r == 0x2581, r == 0xfeff, r == 0xfffd:
			return ' '
		}
		return r
	}, text)
}
