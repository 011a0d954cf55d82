package tokenizer_test

import (
	"encoding/binary"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// TestWrittenVocabulary reads the tokenizer.json that a GGUF file's vocabulary becomes, here and with Hugging Face's
// tokenizers: the ids are those of the GGUF file.
func TestWrittenVocabulary(t *testing.T) {
	tok, path := open(t, "smollm2.gguf")
	f, err := gguf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	v, err := tokenizer.GGUFVocabulary(f)
	require.NoError(t, err)
	again, err := tokenizer.Read(v.JSON())
	require.NoError(t, err)
	rng := rand.New(rand.NewPCG(8, 8))
	var documents []string
	var framed []byte
	for range 60 {
		d := strings.ToValidUTF8(mixed(rng, 300), "\uFFFD")
		require.Equal(t, tok.Encode(d), again.Encode(d))
		documents = append(documents, d)
		framed = append(binary.LittleEndian.AppendUint32(framed, uint32(len(d))), d...)
	}
	folder := t.TempDir()
	job := map[string]string{"file": filepath.Join(folder, "tokenizer.json"), "gguf": "",
		"documents": filepath.Join(folder, "documents"), "ids": filepath.Join(folder, "ids")}
	require.NoError(t, os.WriteFile(job["file"], v.JSON(), 0o600))
	require.NoError(t, os.WriteFile(job["documents"], framed, 0o600))
	python := pythontest.Need(t, "TOKENIZERS", "tokenizers")
	var answer struct{ Seconds float64 }
	pythontest.Ask(t, python, "testdata/published.py", job, &answer)
	ids, err := os.ReadFile(job["ids"])
	require.NoError(t, err)
	for _, d := range documents {
		n := int(binary.LittleEndian.Uint32(ids))
		want := make([]int32, n)
		for i := range want {
			want[i] = int32(binary.LittleEndian.Uint32(ids[4+4*i:]))
		}
		ids = ids[4+4*n:]
		requireIDs(t, tok, tok.Encode(d), want)
	}
}
