package tokenizer

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// small is a published tokenizer.json with two merges, one added token in front and a vocabulary that lacks bytes.
const small = `{"added_tokens": [{"id": 0, "content": "<|end|>", "special": true}], "normalizer": null,
"pre_tokenizer": {"type": "Sequence", "pretokenizers": [{"type": "Digits", "individual_digits": true},
{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true}]}, "decoder": {"type": "ByteLevel"},
"model": {"type": "BPE", "vocab": {"a": 1, "b": 2, "Ġ": 3, "ab": 4, "Ġab": 5, "1": 6},
"merges": ["a b", ["Ġ", "ab"]]}}`

func TestLoadPublished(t *testing.T) {
	tok, err := LoadPublished([]byte(small))
	require.NoError(t, err)
	require.Equal(t, []int32{4, 5, 3, 6, 6, 0, 1}, tok.Encode("ab ab 11<|end|>az"), "z is not in the vocabulary")
	require.Equal(t, " ab<|end|>", tok.Decode([]int32{5, 0, 99, -1}))
	require.ErrorIs(t, tok.Check([]int32{7}), errBadID)
	require.Equal(t, 7, tok.VocabSize())
}

func TestLoadPublishedNamesWhatItRefuses(t *testing.T) {
	for _, c := range []struct{ from, to, says string }{
		{`"type": "BPE"`, `"type": "WordPiece"`, "model WordPiece"},
		{`"normalizer": null`, `"normalizer": {"type": "Lowercase"}`, "normalizer Lowercase"},
		{`"type": "Digits"`, `"type": "Metaspace"`, "Metaspace"},
		{`"add_prefix_space": false`, `"add_prefix_space": true`, "ByteLevel"},
		{`"use_regex": true`, `"use_regex": false`, "by none"},
		{`{"type": "ByteLevel"}`, `{"type": "WordPiece"}`, "decoder"},
		{`"a b"`, `"a c"`, "merge 0"},
		{`"a b"`, `"ab"`, "merge 0"},
		{`"a": 1`, `"a": 1000000000`, "1000000000"},
		{`"a": 1`, `"a": -1`, "-1"},
		{`"a": 1`, `"a": 2`, "id 2"},
		{`"a": 1`, `"字": 1`, "字"},
		{`"special": true`, `"special": true, "lstrip": true`, "lstrip"},
		{`"type": "BPE"`, `"type": "BPE", "byte_fallback": true`, "byte_fallback"},
		{`"type": "BPE"`, `"type": "BPE", "unk_token": "<unk>"`, "unk_token"},
	} {
		bad := strings.Replace(small, c.from, c.to, 1)
		require.NotEqual(t, small, bad)
		_, err := LoadPublished([]byte(bad))
		require.ErrorContains(t, err, c.says, c.to)
	}
	_, err := NewPublished(Vocabulary{Pattern: `\w+`})
	require.ErrorContains(t, err, `\\w+`)
}

func TestWordsOfPatterns(t *testing.T) {
	for _, c := range []struct {
		pattern, text string
		want          []string
	}{
		{llama3Pattern, "I'LL  go 12345\n\n x", []string{"I", "'LL", " ", " go", " ", "123", "45", "\n\n", " x"}},
		// Hugging Face's Split gives these words; ids of published vocabularies do not show where they end.
		{llama3Pattern, "x'ſab y'Sab", []string{"x", "'ſ", "ab", " y", "'S", "ab"}},
		{qwenPattern, "a12 .\n\n b  ", []string{"a", "1", "2", " .\n\n", " b", "  "}},
		{gpt2Pattern, "I'LL  go 123\n", []string{"I", "'", "LL", " ", " go", " 123", "\n"}},
	} {
		var got []string
		for rest := c.text; rest != ""; {
			n := patterns[c.pattern](rest)
			got, rest = append(got, rest[:n]), rest[n:]
		}
		require.Equal(t, c.want, got)
	}
}
