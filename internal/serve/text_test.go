package serve

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestTextsDoNotDependOnPieces: however a text is cut into pieces, also within characters, the same text comes out, and
// a stop text ends it at the same place.
func TestTextsDoNotDependOnPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	letters := []string{"a", "b", "ab", "é", "日", "\U0001F600", " "}
	for range 3000 {
		var b strings.Builder
		for range rng.IntN(12) {
			b.WriteString(letters[rng.IntN(len(letters))])
		}
		text, stops := b.String(), []string{"aba", "bb", "日 "}[:rng.IntN(4)]
		want, at := text, len(text)
		var found string
		for _, s := range stops {
			if i := strings.Index(text, s); i >= 0 && i < at {
				want, at, found = text[:i], i, s
			}
		}
		keep := rng.IntN(2) == 0
		if keep {
			want += found
		}
		o := textOut{stops: stops, keep: keep}
		var got strings.Builder
		ended := ""
		for rest := text; rest != "" && ended == ""; {
			n := 1 + rng.IntN(len(rest))
			var piece string
			piece, ended = o.push(rest[:n])
			got.WriteString(piece)
			rest = rest[n:]
		}
		if ended == "" {
			got.WriteString(o.end())
		}
		if ended != found { // several may end at once; the first one counts
			require.Contains(t, text, ended)
		}
		require.Equal(t, want, got.String(), "%q with %q", text, stops)
	}
}

// TestBadBytes: bytes that are no UTF-8 are replaced, and an incomplete character at the end too.
func TestBadBytes(t *testing.T) {
	o := textOut{}
	text, _ := o.push("a\xff")
	require.Equal(t, "a"+replacement, text)
	text, _ = o.push("\xe6\x97")
	require.Empty(t, text, "the rest may come")
	text, _ = o.push("\xa5")
	require.Equal(t, "日", text)
	o.push("\xf0\x9f")
	require.Equal(t, replacement, o.end())
}

// TestCallsDoNotDependOnPieces: text and calls are the same however a reply is cut.
func TestCallsDoNotDependOnPieces(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	parts := []string{"<tool_call>", `{"name": "f"}`, "</tool_call>", " ", "text", "<", "[TOOL_CALLS]", "[", "]", "{",
		"<|python_tag|>", "\n"}
	seen := 0
	for range 5000 {
		var b strings.Builder
		for range rng.IntN(6) {
			b.WriteString(parts[rng.IntN(len(parts))])
		}
		whole := callFinder{}
		text := whole.push(b.String())
		rest, calls := whole.end()
		text += rest
		if seen += len(calls); len(calls) == 0 {
			require.Equal(t, b.String(), text)
		}
		pieces := callFinder{}
		var got strings.Builder
		for rest := b.String(); rest != ""; {
			n := 1 + rng.IntN(len(rest))
			got.WriteString(pieces.push(rest[:n]))
			rest = rest[n:]
		}
		rest, again := pieces.end()
		got.WriteString(rest)
		require.Equal(t, text, got.String(), "%q", b.String())
		require.Equal(t, calls, again, "%q", b.String())
	}
	require.Positive(t, seen)
}
