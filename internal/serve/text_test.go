package serve

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/rollout/toolcall"
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
	for _, form := range toolcall.All {
		example := form.Write("f", `{"k": "v"}`)
		parts := append([]string{example, `{"name": "f"}`, " ", "text", "<", "[", "]", "{", "\n"}, form.Marks...)
		for range len(example) {
			at := 1 + rng.IntN(len(example))
			for _, piece := range []string{example[:at], example[at:]} {
				parts = append(parts, strings.ToValidUTF8(piece, ""))
			}
		}
		seen := 0
		for range 1000 {
			var b strings.Builder
			for range rng.IntN(6) {
				b.WriteString(parts[rng.IntN(len(parts))])
			}
			whole := newFinder(form, nil, false, false)
			text, _ := whole.push(b.String())
			rest, calls := whole.end(true)
			text += rest
			if seen += len(calls); len(calls) == 0 && !form.Whole() {
				require.Equal(t, b.String(), text)
			}
			pieces := newFinder(form, nil, false, false)
			var got strings.Builder
			for rest := b.String(); rest != ""; {
				n := 1 + rng.IntN(len(rest))
				passed, none := pieces.push(rest[:n])
				require.Empty(t, none)
				got.WriteString(passed)
				rest = rest[n:]
			}
			rest, again := pieces.end(true)
			got.WriteString(rest)
			require.Equal(t, text, got.String(), "%s: %q", form.Name, b.String())
			require.Equal(t, calls, again, "%s: %q", form.Name, b.String())
		}
		require.Positive(t, seen, form.Name)
	}
}

// TestCallsAreStreamed: a call comes in parts while it is written, and the parts make the whole call.
func TestCallsAreStreamed(t *testing.T) {
	const arguments = `{"k":"` + "a long value of many words, with \\" + `"quotes\"",` + `"n":12,"list":["x y","z"]}`
	tools := []toolcall.Tool{{Name: "f", Parameters: json.RawMessage(`{"properties": {"k": {"type": "string"}, ` +
		`"n": {"type": "integer"}, "list": {"type": "array"}}}`)}}
	for _, form := range toolcall.All {
		c := newFinder(form, tools, false, true)
		var got, content strings.Builder
		parts := 0
		take := func(text string, calls []call) {
			content.WriteString(text)
			for _, one := range calls {
				require.Zero(t, one.Index, form.Name)
				require.Equal(t, parts == 0, one.Name == "f", form.Name)
				got.WriteString(one.Arguments)
				parts++
			}
		}
		for _, letter := range form.Write("f", arguments) {
			take(c.push(string(letter)))
		}
		take(c.end(true))
		require.Empty(t, content.String(), form.Name)
		require.JSONEq(t, arguments, got.String(), form.Name)
		// Literals of a language come as a whole, and so do arguments whose key is the tool's name.
		if !slices.Contains([]string{"apertus", "gemma4", "lfm2", "olmo3", "pythonic"}, form.Name) {
			require.Greater(t, parts, 1, form.Name)
		}
	}
}

// Tokens that a form writes around the content are none of it, however a reply is cut.
func TestTokensAroundTheContent(t *testing.T) {
	form, err := toolcall.Named("kimi_k3")
	require.NoError(t, err)
	const reply = "<|open|>response<|sep|>It is <|open|>4.<|close|>response<|sep|><|close|>message<|sep|>"
	for n := 1; n <= len(reply); n++ {
		c := newFinder(form, nil, false, true)
		var content strings.Builder
		for rest := reply; rest != ""; rest = rest[min(n, len(rest)):] {
			text, calls := c.push(rest[:min(n, len(rest))])
			require.Empty(t, calls)
			content.WriteString(text)
		}
		text, calls := c.end(true)
		require.Empty(t, calls)
		require.Equal(t, "It is <|open|>4.", content.String()+text)
	}
}
