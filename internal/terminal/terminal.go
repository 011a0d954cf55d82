// Package terminal keeps texts of others from controlling the terminal that shows them.
//
// What models, servers, datasets and other users of a store have written is printed with the rest. A control character
// in it could move the cursor, rewrite earlier lines, set the title or the clipboard, or turn the direction of the text
// around, so that a person reads something else than what is there.
package terminal

import (
	"fmt"
	"io"
	"sync"
	"unicode"
	"unicode/utf8"
)

// Writer passes texts to a terminal or a file, with each control character but line ends and tabs as \u and its number,
// which is the same character in JSON. It is safe for concurrent use.
type Writer struct {
	to io.Writer

	mu   sync.Mutex
	rest []byte // of a character, or of a line end, that the next Write continues
}

// NewWriter makes a writer to w.
func NewWriter(w io.Writer) *Writer { return &Writer{to: w} }

// Write implements io.Writer.
func (w *Writer) Write(p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := append(w.rest, p...)
	end := whole(text)
	w.rest = append([]byte(nil), text[end:]...)
	if _, err := w.to.Write(appendPlain(nil, text[:end])); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush writes the part of a character that nothing has continued.
func (w *Writer) Flush() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := w.rest
	w.rest = nil
	_, err := w.to.Write(appendPlain(nil, text))
	return err
}

// Plain is a text as a Writer writes it.
func Plain(text string) string { return string(appendPlain(nil, []byte(text))) }

// Line is a text as a Writer writes it, on one line.
func Line(text string) string {
	out := []byte{}
	for _, r := range Plain(text) {
		if r == '\n' || r == '\t' || r == '\r' {
			out = appendEscaped(out, r)
		} else {
			out = utf8.AppendRune(out, r)
		}
	}
	return string(out)
}

// whole returns how much of a text can be written before more is known.
func whole(text []byte) int {
	n := len(text)
	for i := max(0, n-utf8.UTFMax+1); i < n; i++ {
		if utf8.RuneStart(text[i]) && !utf8.FullRune(text[i:]) {
			return i
		}
	}
	if n > 0 && text[n-1] == '\r' {
		return n - 1
	}
	return n
}

func appendPlain(out, text []byte) []byte {
	for len(text) > 0 {
		r, n := utf8.DecodeRune(text)
		switch {
		case r == '\r' && len(text) > 1 && text[1] == '\n':
			out = append(out, '\r')
		case r == utf8.RuneError && n == 1: // a byte that could be a control character in another encoding
			out = utf8.AppendRune(out, utf8.RuneError)
		case controls(r):
			out = appendEscaped(out, r)
		default:
			out = append(out, text[:n]...)
		}
		text = text[n:]
	}
	return out
}

func appendEscaped(out []byte, r rune) []byte { return fmt.Appendf(out, `\u%04x`, r) }

// controls reports whether a character does more to a terminal than show a sign.
func controls(r rune) bool {
	if r == '\n' || r == '\t' {
		return false
	}
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || r == '\u2028' || r == '\u2029'
}
