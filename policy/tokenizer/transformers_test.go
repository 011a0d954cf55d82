package tokenizer

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// reference is what transformers makes of texts.
type reference struct {
	Size    int
	EOS     int32
	Answers []struct {
		IDs  []int32
		Text string
	}
}

// question is a tokenizer in a folder, and texts for it.
type question struct {
	Folder string   `json:"folder"`
	Texts  []string `json:"texts"`
}

// ask writes a tokenizer's files down.
func ask(t *testing.T, tok *Tokenizer, texts []string) question {
	t.Helper()
	q := question{t.TempDir(), texts}
	for name, data := range tok.Files() {
		if err := os.WriteFile(filepath.Join(q.Folder, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return q
}

// askTransformers loads each tokenizer with AutoTokenizer and sends it its texts.
func askTransformers(t *testing.T, questions []question) []reference {
	t.Helper()
	request, err := json.Marshal(questions)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(pythontest.Need(t, "TORCH", "transformers"), "testdata/reference.py")
	var stderr bytes.Buffer
	cmd.Stdin, cmd.Stderr = bytes.NewReader(request), &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("run the reference: %v\n%s", err, stderr.String())
	}
	var got []reference
	if err := json.Unmarshal(out, &got); err != nil {
		t.Fatal(err)
	}
	if len(got) != len(questions) {
		t.Fatalf("%d questions have %d answers", len(questions), len(got))
	}
	return got
}

func TestSameIDsAsTransformers(t *testing.T) {
	whole, err := New(append(protocol.RStar2{}.Added(), calc.Added()...))
	if err != nil {
		t.Fatal(err)
	}
	trained, err := Train(sampleAdded, append(texts(50), protocol.RStar2{}.Added()...), 700)
	if err != nil {
		t.Fatal(err)
	}
	names, all := []string{"sample", "policy", "trained"}, []*Tokenizer{sample(t), whole, trained}
	samples := append(texts(20), "x  \n\n  y\tz", "we're it'S 's", "½ ² Ⅷ ٣", "\u00a0x \u2003 y", "e\u0301 🙂🙂  🙂")
	var questions []question
	for _, tok := range all {
		rng := rand.New(rand.NewPCG(3, 4))
		texts := []string{"abcde abcd abc ab a", " leading and trailing \n", "1 ÷ 2 × 3 ÷4", "don't . , !", "ĠÃ©"}
		for range 300 {
			texts = append(texts, randomText(rng, tok.added))
		}
		texts = append(texts, samples...)
		questions = append(questions, ask(t, tok, texts))
	}
	for i, got := range askTransformers(t, questions) {
		requireSame(t, names[i], all[i], questions[i].Texts, got)
	}
}

// requireSame holds a tokenizer against what transformers makes of it and of texts.
func requireSame(t *testing.T, name string, tok *Tokenizer, texts []string, got reference) {
	t.Helper()
	if got.Size != tok.VocabSize() {
		t.Errorf("%s: transformers counts %d tokens, we %d", name, got.Size, tok.VocabSize())
	}
	if id, _ := tok.ID(EndOfTurn); got.EOS != id {
		t.Errorf("%s: transformers ends at id %d, we at %d", name, got.EOS, id)
	}
	for i, text := range texts {
		if d := cmp.Diff(got.Answers[i].IDs, tok.Encode(text)); d != "" {
			t.Errorf("%s: ids of %q (-transformers +ours):\n%s", name, text, d)
		}
		if got.Answers[i].Text != text {
			t.Errorf("%s: transformers decodes %q as %q", name, text, got.Answers[i].Text)
		}
	}
}
