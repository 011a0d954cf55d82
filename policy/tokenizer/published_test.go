package tokenizer_test

import (
	"encoding/binary"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/unicode/norm"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// published are the files that the comparison needs, below the folder that ROPEWALK_TOKENIZERS names. `make
// tokenizers` fetches them.
var published = []string{"qwen3.json", "llama3.json", "smollm2.gguf"}

// open reads one of the published tokenizers. Without the file, the test is skipped, or fails if
// ROPEWALK_REQUIRE_TOKENIZERS is set.
func open(t testing.TB, name string) (*tokenizer.Published, string) {
	t.Helper()
	path := filepath.Join(os.Getenv("ROPEWALK_TOKENIZERS"), name)
	if _, err := os.Stat(path); os.Getenv("ROPEWALK_TOKENIZERS") == "" || err != nil {
		if os.Getenv("ROPEWALK_REQUIRE_TOKENIZERS") != "" {
			t.Fatalf("ROPEWALK_TOKENIZERS names no folder with %s: make tokenizers fetches it", name)
		}
		t.Skipf("ROPEWALK_TOKENIZERS names no folder with %s", name)
	}
	if strings.HasSuffix(name, ".gguf") {
		f, err := gguf.Open(path)
		require.NoError(t, err)
		defer f.Close()
		v, err := tokenizer.GGUFVocabulary(f)
		require.NoError(t, err)
		out, err := tokenizer.NewPublished(v)
		require.NoError(t, err)
		return out, path
	}
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	out, err := tokenizer.LoadPublished(data)
	require.NoError(t, err)
	return out, path
}

// TestPublishedIDsEqualHuggingFaces compares ids over at least 10 MB of code and generated text of many scripts.
func TestPublishedIDsEqualHuggingFaces(t *testing.T) {
	for _, name := range published {
		t.Run(name, func(t *testing.T) {
			tok, path := open(t, name)
			python := pythontest.Need(t, "TOKENIZERS", "tokenizers", "gguf")
			documents := corpus(t)
			folder := t.TempDir()
			job := map[string]string{"file": path, "gguf": path, "documents": filepath.Join(folder, "documents"),
				"ids": filepath.Join(folder, "ids")}
			if strings.HasSuffix(path, ".gguf") {
				job["file"] = ""
			}
			var framed []byte
			for _, d := range documents {
				framed = append(binary.LittleEndian.AppendUint32(framed, uint32(len(d))), d...)
			}
			require.NoError(t, os.WriteFile(job["documents"], framed, 0o600))
			var answer struct{ Seconds float64 }
			pythontest.Ask(t, python, "testdata/published.py", job, &answer)
			ids, err := os.ReadFile(job["ids"])
			require.NoError(t, err)
			var own float64 // seconds of the first encoding, before words are remembered
			for _, d := range documents {
				n := int(binary.LittleEndian.Uint32(ids))
				want := make([]int32, n)
				for i := range want {
					want[i] = int32(binary.LittleEndian.Uint32(ids[4+4*i:]))
				}
				ids = ids[4+4*n:]
				start := time.Now()
				got := tok.Encode(d)
				own += time.Since(start).Seconds()
				requireIDs(t, tok, got, want)
			}
			require.Empty(t, ids)
			t.Logf("%d documents: Hugging Face %.2f s, ours %.2f s, ratio %.2f", len(documents), answer.Seconds, own,
				answer.Seconds/own)
		})
	}
}

// requireIDs compares ids and shows the place of the first difference.
func requireIDs(t *testing.T, tok *tokenizer.Published, got, want []int32) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i < len(got) && i < len(want) && got[i] == want[i] {
			continue
		}
		from := max(i-3, 0)
		t.Fatalf("ids from token %d: Hugging Face %v %q, ours %v %q", from,
			part(want, from), tok.Decode(part(want, from)), part(got, from), tok.Decode(part(got, from)))
	}
}

func part(ids []int32, from int) []int32 { return ids[min(from, len(ids)):min(from+9, len(ids))] }

// corpusBytes is the size of the text that tokenizers are compared on.
const corpusBytes = 11 << 20

// corpus returns documents of valid UTF-8: generated ones, then files of the Go tree.
func corpus(t *testing.T) (documents []string) {
	t.Helper()
	rng := rand.New(rand.NewPCG(11, 12))
	size := 0
	for size < corpusBytes/2 {
		d := mixed(rng, 400)
		documents, size = append(documents, d), size+len(d)
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	require.NoError(t, err)
	tree := filepath.Join(strings.TrimSpace(string(root)), "src")
	err = filepath.WalkDir(tree, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d := strings.ToValidUTF8(string(data), "\uFFFD")
		documents, size = append(documents, d), size+len(d)
		if size >= corpusBytes {
			return fs.SkipAll
		}
		return nil
	})
	require.NoError(t, err)
	require.GreaterOrEqual(t, size, 10<<20, "text to compare")
	return documents
}

var fragments = []string{
	"<|im_start|>", "<|im_end|>", "<|endoftext|>", "<|eot_id|>", "<think>", "<|im_", "|>",
	"'s", "'S", "'ſ", "'LL", "'re",
	"don't ", " the", "The quick", "\n", "\r\n", "\n\n  ", "\t\t", "   ", " ", "\u00a0", "\u2028", "\u3000", "\u0085",
	"123", "4567890", "٣٤", "Ⅷ", "½", "é", "e\u0301", "\u1112\u1161\u11ab", "漢字かな交じり文", "한국어", "你好，世界。",
	"👩‍👩‍👧‍👦", "🏳️‍🌈", "🇩🇪",
	"عربي", "हिन्दी", "\ufffd", "\x00", "\x7f", "\ufeff", "func f(a, b int) {", "}\n", "=== ", "/*", "->",
	"https://a.b/c?d=e&f", "Å", "ﬁ", "𝔘𝔫𝔦", "😀😀", "ſt", "---", "\\n", "\"", "…", "ĠĊ", "\u0300\u0301",
}

// mixed returns random text of many scripts.
func mixed(rng *rand.Rand, pieces int) string {
	var b strings.Builder
	for range pieces {
		switch rng.IntN(8) {
		case 0:
			b.WriteRune(assigned(rng))
		case 1:
			for range rng.IntN(12) {
				b.WriteByte(byte('a' + rng.IntN(26)))
			}
		case 2:
			b.WriteString(strings.Repeat(string("  \n\r\t"[rng.IntN(5)]), rng.IntN(6)))
		default:
			b.WriteString(fragments[rng.IntN(len(fragments))])
		}
	}
	return b.String()
}

// assigned returns a character of one of the usual blocks.
func assigned(rng *rand.Rand) rune {
	blocks := [][2]rune{{0, 0x377}, {0x400, 0x52f}, {0x5d0, 0x5ea}, {0x620, 0x6ff}, {0x905, 0x939}, {0x0e01, 0x0e3a},
		{0x2000, 0x206f}, {0x2190, 0x23ff}, {0x3041, 0x3096}, {0x4e00, 0x9fa5}, {0xac00, 0xd7a3}, {0xff01, 0xffbe},
		{0x1f300, 0x1f64f}, {0x1d400, 0x1d4ff}, {0x10000, 0x1000b}}
	b := blocks[rng.IntN(len(blocks))]
	return b[0] + rng.Int32N(b[1]-b[0]+1)
}

// TestPublishedKeepsEveryByte decodes what it encodes, also where the text is not UTF-8.
func TestPublishedKeepsEveryByte(t *testing.T) {
	for _, name := range []string{"qwen3.json", "llama3.json"} { // the vocabulary of SmolLM2 lacks bytes
		t.Run(name, func(t *testing.T) {
			tok, _ := open(t, name)
			rng := rand.New(rand.NewPCG(5, 6))
			for range 500 {
				text := mixed(rng, 30)
				text += "\xff\xc3" + text[:rng.IntN(len(text)+1)] + "\xf0\x9f"
				want := text
				if name == "qwen3.json" {
					want = norm.NFC.String(text)
				}
				ids := tok.Encode(text)
				require.NoError(t, tok.Check(ids))
				require.Equal(t, want, tok.Decode(ids))
			}
		})
	}
}
