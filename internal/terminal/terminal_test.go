package terminal

import (
	"bytes"
	"encoding/json"
	"io"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPlain(t *testing.T) {
	for text, want := range map[string]string{
		"plain é 漢字 👍\n\ttab\r\nend":   "plain é 漢字 👍\n\ttab\r\nend",
		"\x1b[2J\x1b]0;title\x07":      `\u001b[2J\u001b]0;title\u0007`,
		"over\rwritten\b\x00\x7f":      `over\u000dwritten\u0008\u0000\u007f`,
		"\u009b31m":                    `\u009b31m`,
		"\x9b31m":                      "\uFFFD31m",
		"a\u202eb\u2066c\u2069\u200fd": `a\u202eb\u2066c\u2069\u200fd`,
		"a\u061cb\u2028c\u2029":        `a\u061cb\u2028c\u2029`,
	} {
		require.Equal(t, want, Plain(text))
		var b bytes.Buffer
		w := NewWriter(&b)
		for i := range len(text) { // characters come in pieces
			n, err := w.Write([]byte{text[i]})
			require.NoError(t, err)
			require.Equal(t, 1, n)
		}
		require.NoError(t, w.Flush())
		require.Equal(t, want, b.String())
	}
	require.Equal(t, `a\u000ab\u0009c\u000d\u000a`, Line("a\nb\tc\r\n"))
}

func TestJSONStaysTheSame(t *testing.T) {
	want := "a\u202eb\u009b\u2028\x1b\r\n"
	text, err := json.Marshal(want)
	require.NoError(t, err)
	var got string
	require.NoError(t, json.Unmarshal([]byte(Plain(string(text))), &got))
	require.Equal(t, want, got)
}

func TestUnfinishedCharacter(t *testing.T) {
	var b bytes.Buffer
	w := NewWriter(&b)
	_, err := w.Write([]byte("a\xe6"))
	require.NoError(t, err)
	require.Equal(t, "a", b.String())
	require.NoError(t, w.Flush())
	require.Equal(t, "a\uFFFD", b.String())
}

// A table's columns are as wide as its own cells; a line ends it.
func TestPrinter(t *testing.T) {
	var out bytes.Buffer
	p := NewPrinter(&out)
	p.Row("run", "steps")
	p.Row("quickstart", 3)
	p.Line("%d runs", 1)
	p.Row("a", "b")
	require.NoError(t, p.Close())
	require.Equal(t, "run         steps\nquickstart  3\n1 runs\na  b\n", out.String())

	p = NewPrinter(failing{})
	p.Row("lost")
	p.Line("lost too")
	require.ErrorIs(t, p.Close(), io.ErrClosedPipe)
}

// failing refuses every write.
type failing struct{}

func (failing) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }
