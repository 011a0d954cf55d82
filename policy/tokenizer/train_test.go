package tokenizer

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestWords splits as GPT-2's pattern does; TestSameIDsAsTransformers compares more texts.
func TestWords(t *testing.T) {
	for text, want := range map[string]string{
		"":                         "",
		"Hello world":              "Hello| world",
		"don't, we'll":             "don|'t|,| we|'ll",
		"a1 22b":                   "a|1| 22|b",
		"x  y":                     "x| | y",
		"x   y":                    "x|  | y",
		"x \n y":                   "x| \n| y",
		"x\ny":                     "x|\n|y",
		"x\n\ny":                   "x|\n|\n|y",
		"end  ":                    "end|  ",
		" ":                        " ",
		"a(b)==c":                  "a|(|b|)==|c",
		"naïve 漢字 ½":               "naïve| 漢字| ½",
		"You go to the desk 1. On": "You| go| to| the| desk| 1|.| On",
	} {
		require.Equal(t, want, strings.Join(wordsOf(text), "|"), "%q", text)
	}
}

// TestTrainByHand: "ab" occurs 5 times, then "abc" 3 times and " x" 3 times, of which "abc" has the smaller bytes.
func TestTrainByHand(t *testing.T) {
	tok, err := Train([]string{"<s>"}, []string{"abc abc<s>abc", "ab ab", " x x x"}, 256+1+3)
	require.NoError(t, err)
	require.Equal(t, []string{"a b", "Ġ x", "ab c"}, tok.Merges())
	require.Equal(t, []string{"abc", "<s>", "ab", " x", "y"}, tok.Pieces(tok.Encode("abc<s>ab xy")))
	id, ok := tok.ID("<s>")
	require.True(t, ok)
	require.EqualValues(t, 259, id)
	require.Equal(t, 260, tok.VocabSize())
}

// TestTrainStops where no pair occurs twice, and refuses a vocabulary without room for the bytes.
func TestTrainStops(t *testing.T) {
	tok, err := Train(nil, []string{"abcd"}, 1000)
	require.NoError(t, err)
	require.Equal(t, 256, tok.VocabSize())
	_, err = Train([]string{"<s>"}, nil, 256)
	require.ErrorContains(t, err, "bytes and fixed strings alone are 257")
}

// texts are of a small language, so that words repeat.
func texts(n int) []string {
	r := rand.New(rand.NewPCG(5, 6))
	words := strings.Fields("go to the countertop take mug from desk put cabinet 12 345 it's heat; ÷ naïve 漢字 <x> \\n")
	out := make([]string, n)
	for i := range out {
		for range 40 {
			out[i] += words[r.IntN(len(words))] + []string{" ", "", "\n", "  "}[r.IntN(4)]
		}
	}
	return out
}

// TestTrainIsDeterministic: the order of the texts does not matter.
func TestTrainIsDeterministic(t *testing.T) {
	all := texts(50)
	a, err := Train(sampleAdded, all, 600)
	require.NoError(t, err)
	slices.Reverse(all)
	b, err := Train(sampleAdded, all, 600)
	require.NoError(t, err)
	require.Equal(t, a.Files(), b.Files())
	require.Greater(t, a.VocabSize(), 350)
	seen := map[string]bool{}
	for _, piece := range a.pieces {
		require.False(t, seen[piece], "%q is there twice", piece)
		seen[piece] = true
	}
}

// TestTrainedRoundTrip: decoding gives any bytes back, and the file gives the tokenizer back.
func TestTrainedRoundTrip(t *testing.T) {
	tok, err := Train(sampleAdded, texts(50), 600)
	require.NoError(t, err)
	again, err := Load(tok.Files()["tokenizer.json"])
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(7, 8))
	for range 300 {
		raw := make([]byte, r.IntN(200))
		for i := range raw {
			raw[i] = byte(r.IntN(256))
		}
		text := string(raw) + texts(1)[0]
		ids := tok.Encode(text)
		require.NoError(t, tok.Check(ids))
		require.Equal(t, text, tok.Decode(ids))
		require.Equal(t, ids, again.Encode(text))
	}
	require.Less(t, len(tok.Encode(texts(1)[0]))*2, len(texts(1)[0]), "merges shorten the texts they were trained on")
}

// TestLongWords are split like short ones.
func TestLongWords(t *testing.T) {
	tok, err := Train(nil, append(texts(50), strings.Repeat("ab", 40), strings.Repeat("a", 90)), 600)
	require.NoError(t, err)
	r := rand.New(rand.NewPCG(9, 1))
	for range 500 {
		word := make([]byte, 1+r.IntN(longestKept))
		for i := range word {
			word[i] = "abtheoukcnrg"[r.IntN(12)]
		}
		require.Equal(t, tok.merges.split(string(word)), tok.merges.splitLong(string(word)), "%s", word)
	}
	require.Equal(t, strings.Repeat("a", 100_000), tok.Decode(tok.Encode(strings.Repeat("a", 100_000))))
}

// TestRefusedMerges: a file whose merges do not make its tokens is an error.
func TestRefusedMerges(t *testing.T) {
	tok, err := Train(nil, []string{"abc abc abc"}, 258)
	require.NoError(t, err)
	file := string(tok.Files()["tokenizer.json"])
	for from, to := range map[string]string{
		`"Ġabc"`: `"Ġabd"`, `"use_regex": true`: `"use_regex": false`, `"abc": 2`: `"abc": 3`,
	} {
		if !strings.Contains(file, from) {
			continue
		}
		_, err := Load([]byte(strings.Replace(file, from, to, 1)))
		require.ErrorContains(t, err, "read tokenizer.json", from)
	}
	_, err = Load([]byte(strings.Replace(file, `"a",`, `"b",`, 1)))
	require.ErrorContains(t, err, "merge 0")
}
