package pretrained

import (
	"testing"

	"github.com/stretchr/testify/require"

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
