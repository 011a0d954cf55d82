package serve

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// replacement stands for bytes that are no UTF-8.
const replacement = "\uFFFD"

// textOut makes a text of pieces that come one after the other. It holds back the beginning of a character whose rest
// may come, and text that may begin a stop text.
type textOut struct {
	stops   []string
	keep    bool // whether the text ends with the stop text that was found
	pending string
	held    string
}

// push adds a piece and returns the text that is certain now. found is the stop text that ended the text.
func (t *textOut) push(piece string) (text, found string) {
	whole, rest := characters(t.pending + piece)
	t.pending = rest
	all := t.held + whole
	at := -1
	for _, s := range t.stops {
		if i := strings.Index(all, s); i >= 0 && (at < 0 || i < at || i == at && len(s) > len(found)) {
			at, found = i, s
		}
	}
	if at >= 0 {
		t.held, t.pending = "", ""
		if t.keep {
			at += len(found)
		}
		return all[:at], found
	}
	cut := len(all) - t.mayBegin(all)
	t.held = all[cut:]
	return all[:cut], ""
}

// mayBegin is the length of the longest end of a text that a stop text begins with.
func (t *textOut) mayBegin(text string) (longest int) {
	for _, s := range t.stops {
		for n := min(len(s)-1, len(text)); n > longest; n-- {
			if strings.HasSuffix(text, s[:n]) {
				longest = n
			}
		}
	}
	return longest
}

// end returns what was held back.
func (t *textOut) end() string {
	text := t.held + validText(t.pending)
	t.held, t.pending = "", ""
	return text
}

// characters splits bytes into whole characters and the beginning of one that is not complete.
func characters(text string) (whole, rest string) {
	for n := 1; n < utf8.UTFMax && n <= len(text); n++ {
		if b := text[len(text)-n]; utf8.RuneStart(b) {
			if !utf8.FullRuneInString(text[len(text)-n:]) {
				return validText(text[:len(text)-n]), text[len(text)-n:]
			}
			break
		}
	}
	return validText(text), ""
}

// validText is a text in which bytes that are no UTF-8 are replaced.
func validText(text string) string { return strings.ToValidUTF8(text, replacement) }

// tokenText is how answers spell a token. Bytes that are no text are written so that no two tokens look alike.
func tokenText(m *Model, id int32, byID bool) string {
	if byID {
		return fmt.Sprintf("token_id:%d", id)
	}
	text := m.Tokens.Decode([]int32{id})
	if utf8.ValidString(text) {
		return text
	}
	var b strings.Builder
	b.WriteString("bytes:")
	for i := range len(text) {
		fmt.Fprintf(&b, `\x%02x`, text[i])
	}
	return b.String()
}
