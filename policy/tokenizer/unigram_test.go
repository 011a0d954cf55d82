package tokenizer_test

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// TestUnigramIDsEqualHuggingFaces compares the ids of mixed texts under Unigram tokenizers that the test trains.
func TestUnigramIDsEqualHuggingFaces(t *testing.T) {
	python := pythontest.Need(t, "TOKENIZERS", "tokenizers")
	rng := rand.New(rand.NewPCG(3, 4))
	var train, documents []string
	common := func(r rune) rune { // the vocabulary must have room for every character that it is trained on
		if r < 0x250 || strings.ContainsRune("漢字かな你好한국어", r) {
			return r
		}
		return -1
	}
	for range 120 {
		train = append(train, strings.Map(common, strings.ToValidUTF8(mixed(rng, 60), "")),
			"The quick brown fox, 12 times 34 is what? ``So'' .")
	}
	for range 300 {
		documents = append(documents, strings.ToValidUTF8(mixed(rng, 120), "\uFFFD"))
	}
	documents = append(documents, "", " ", "a", "  a  b ", "\u2581x", "<|im_start|>user\n2 + 2<|im_end|>", "<unk>", "ӿ",
		"q\u4e00\u4e01\u4e02z<|extra|> w")
	var answers []struct {
		Name, File string
		IDs        [][]int32
	}
	pythontest.Ask(t, python, "testdata/unigram.py", map[string]any{"folder": t.TempDir(), "train": train,
		"documents": documents}, &answers)
	require.Len(t, answers, 4)
	for _, a := range answers {
		t.Run(a.Name, func(t *testing.T) {
			data, err := os.ReadFile(a.File)
			require.NoError(t, err)
			codec, err := tokenizer.Read(data)
			require.NoError(t, err)
			tok := codec.(*tokenizer.Published)
			for i, d := range documents {
				got := tok.Encode(d)
				require.NoError(t, tok.Check(got))
				requireIDs(t, tok, got, a.IDs[i])
			}
			require.Equal(t, "quick 12", strings.TrimSpace(tok.Decode(tok.Encode("quick 12"))))
			start, ok := tok.ID("<|im_start|>")
			require.True(t, ok)
			require.Contains(t, tok.Encode("a<|im_start|>b"), start)
		})
	}
}

// TestUnigramRefuses names what is not supported.
func TestUnigramRefuses(t *testing.T) {
	const good = `{"added_tokens": [], "normalizer": null, "pre_tokenizer": {"type": "Metaspace", "replacement": "▁",
		"prepend_scheme": "always"}, "model": {"type": "Unigram", "unk_id": 0, "vocab": [["<unk>", 0], ["a", -1]]}}`
	_, err := tokenizer.LoadPublished([]byte(good))
	require.NoError(t, err)
	for _, c := range []struct{ from, to, says string }{
		{`"normalizer": null`, `"normalizer": {"type": "Precompiled"}`, "normalizer Precompiled"},
		{`"Metaspace"`, `"Punctuation"`, "Punctuation"},
		{`"unk_id": 0`, `"unk_id": 7`, "unknown piece 7"},
		{`["a", -1]`, `["a", "b"]`, "score of token 1"},
		{`"added_tokens": []`, `"added_tokens": [{"id": 1, "content": "b"}]`, `id 1 is given to "a" and to "b"`},
		{`"added_tokens": []`, `"added_tokens": [{"id": 2, "content": "b", "lstrip": true}]`, "lstrip"},
	} {
		require.Contains(t, good, c.from)
		_, err := tokenizer.LoadPublished([]byte(strings.Replace(good, c.from, c.to, 1)))
		require.ErrorContains(t, err, c.says)
	}
}
