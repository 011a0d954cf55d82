package tokenizer

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// wordsOf splits a text as GPT-2 does, so that no merge crosses the border of a word: contractions, letters, digits and
// other characters each with a space before them, and runs of white space. The words' concatenation is the text.
//
// Source: the pattern of Hugging Face's ByteLevel pre-tokenizer,
//
//	's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
//
// A byte that is no valid UTF-8 counts as another character.
func wordsOf(text string) []string {
	var out []string
	for len(text) > 0 {
		n := wordLength(text)
		out = append(out, text[:n])
		text = text[n:]
	}
	return out
}

var contractions = []string{"'s", "'t", "'re", "'ve", "'m", "'ll", "'d"}

// class is the kind of characters that a word consists of.
type class int

const (
	letter class = iota
	digit
	space
	other
)

// classOf returns the class of the first character of a text, and its length.
func classOf(text string) (class, int) {
	r, n := utf8.DecodeRuneInString(text)
	switch {
	case r == utf8.RuneError && n == 1:
		return other, 1
	case unicode.IsLetter(r):
		return letter, n
	case unicode.In(r, unicode.Nd, unicode.Nl, unicode.No):
		return digit, n
	case unicode.IsSpace(r):
		return space, n
	}
	return other, n
}

// wordLength is the length of the first word of a text.
func wordLength(text string) int {
	for _, c := range contractions {
		if strings.HasPrefix(text, c) {
			return len(c)
		}
	}
	at := 0
	if text[0] == ' ' && len(text) > 1 {
		if c, _ := classOf(text[1:]); c != space {
			at = 1
		}
	}
	c, n := classOf(text[at:])
	last := at // where the last character of the run begins
	for at += n; at < len(text); at += n {
		var next class
		if next, n = classOf(text[at:]); next != c {
			break
		}
		last = at
	}
	// White space before a word leaves its last character to that word, or to a run of its own.
	if c == space && at < len(text) && last > 0 {
		return last
	}
	return at
}
