package pretrained

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// small is a vocabulary of two letters, a mark and a tag.
func small() tokenizer.Vocabulary {
	return tokenizer.Vocabulary{Tokens: []string{"<|im_start|>", "a", "b", "ab", "", "<tag>"}, Added: []int32{0, 5},
		Shown: []int32{5}, Merges: [][2]string{{"a", "b"}}, Pattern: `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ` +
			`?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`, Digits: true}
}

func TestVocabularyOfAPublishedTokenizer(t *testing.T) {
	got, err := Vocabulary(map[string][]byte{fileTokenizer: small().JSON(),
		fileTokenizerConfig: []byte(`{"bos_token": {"content": "<|im_start|>"}, "chat_template": "{{ x }}"}`)})
	require.NoError(t, err)
	require.Equal(t, gguf.Vocabulary{Tokens: small().Tokens, Added: []int32{5}, Marks: []int32{0},
		Merges: []string{"a b"}, Split: "smollm", Start: 0, ChatTemplate: "{{ x }}"}, got)
	got, err = Vocabulary(map[string][]byte{fileTokenizer: small().JSON()})
	require.NoError(t, err)
	require.EqualValues(t, -1, got.Start)
}

func TestVocabulariesThatGGUFCannotHold(t *testing.T) {
	other := small()
	other.NFC = true
	for want, files := range map[string]map[string][]byte{
		"it has no tokenizer.json":       {},
		"GGUF has no name for the way":   {fileTokenizer: other.JSON()},
		"model Unigram is not supported": {fileTokenizer: []byte(`{"model": {"type": "Unigram", "vocab": []}}`)},
		"bos_token is neither a text": {fileTokenizer: small().JSON(),
			fileTokenizerConfig: []byte(`{"bos_token": 3}`)},
		"read tokenizer_config.json": {fileTokenizer: small().JSON(), fileTokenizerConfig: []byte(`{`)},
	} {
		_, err := Vocabulary(files)
		require.ErrorContains(t, err, want)
	}
}

// A GGUF file of a policy that is made here is read back: its texts have the same ids, with and without merges.
func TestPoliciesMadeHereAreReadFromGGUF(t *testing.T) {
	added := []string{tokenizer.EndOfTurn, "<|im_start|>user\n", "print(", "\n\n"}
	plain, err := tokenizer.New(added)
	require.NoError(t, err)
	trained, err := tokenizer.Train(added, []string{"one and two and three and four"}, 280)
	require.NoError(t, err)
	for _, own := range []*tokenizer.Tokenizer{plain, trained} {
		folder, file := filepath.Join(t.TempDir(), "made"), filepath.Join(t.TempDir(), "made.gguf")
		end, _ := own.ID(tokenizer.EndOfTurn)
		require.NoError(t, checkpoint.Init(folder, checkpoint.Shape{Vocab: own.VocabSize() + 3, Hidden: 16, Layers: 1,
			Heads: 2, KVHeads: 1, HeadDim: 8, FFN: 16, Positions: 64, RopeTheta: 1e4, NormEps: 1e-6,
			EOS: []int32{end}, Pad: -1}, 1, own.Files()))
		c, err := checkpoint.Read(folder, false)
		require.NoError(t, err)
		m := gguf.Model{Name: "made", Checkpoint: c, Dtype: checkpoint.F32}
		m.Vocabulary, err = Vocabulary(c.Extra)
		require.NoError(t, err)
		f, err := os.Create(file)
		require.NoError(t, err)
		require.NoError(t, gguf.Write(f, m))
		require.NoError(t, f.Close())

		back := filepath.Join(t.TempDir(), "back")
		require.NoError(t, Take(file, back))
		files, err := Files(back)
		require.NoError(t, err)
		got, err := Read(files)
		require.NoError(t, err)
		require.Equal(t, []string{tokenizer.EndOfTurn}, got.Ends)
		for _, text := range []string{"<|im_start|>user\nWhat is 1 + 2?<|im_end|>", "print(1)\n\nü\x00\xff", "one  and",
			""} {
			require.Equal(t, own.Encode(text), got.Tokens.Encode(text), "%q", text)
			require.Equal(t, text, got.Tokens.Decode(got.Tokens.Encode(text)))
		}
	}
}
