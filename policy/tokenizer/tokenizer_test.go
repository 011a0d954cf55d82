package tokenizer

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// sampleAdded holds tokens that are prefixes of each other, span lines and leave ASCII.
var sampleAdded = []string{
	EndOfTurn, "<|im_start|>user\n", "ab", "abc", "abcde", "bcd", " × ", " ÷ ", "//", "\n\t\n", `", "input": ""}}`,
}

func sample(t testing.TB) *Tokenizer {
	t.Helper()
	tok, err := New(sampleAdded)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestEncodeTakesLeftmostLongest(t *testing.T) {
	tok := sample(t)
	for _, c := range []struct {
		text string
		want []string
	}{
		{"", nil},
		{"abc", []string{"abc"}},
		{"abcd", []string{"abc", "d"}},                // the longest at the first position, not "ab"+…
		{"abcdx", []string{"abc", "d", "x"}},          // "abcde" fails late and falls back to "abc"
		{"xbcda", []string{"x", "bcd", "a"}},          //
		{"1 ÷ 2", []string{"1", " ÷ ", "2"}},          //
		{"÷", []string{"\xc3", "\xb7"}},               // no added token: its two bytes
		{"///", []string{"//", "/"}},                  //
		{"<|im_end|", strings.Split("<|im_end|", "")}, // unfinished: bytes
	} {
		got := tok.Pieces(tok.Encode(c.text))
		if len(got) == 0 {
			got = nil
		}
		if d := cmp.Diff(c.want, got); d != "" {
			t.Errorf("encode %q (-want +got):\n%s", c.text, d)
		}
	}
}

func TestEveryByteHasItsOwnToken(t *testing.T) {
	tok := sample(t)
	for b := 0; b < 256; b++ {
		ids := tok.Encode(string([]byte{byte(b)}))
		if len(ids) != 1 || ids[0] != int32(b) {
			t.Fatalf("byte %d encodes as %v", b, ids)
		}
	}
	if got, want := tok.VocabSize(), 256+len(sampleAdded); got != want {
		t.Errorf("vocabulary of %d, want %d", got, want)
	}
	if err := tok.Check([]int32{0, int32(tok.VocabSize())}); err == nil {
		t.Error("an id outside the vocabulary passed the check")
	}
}

func TestNewRefusesWhatCannotRoundTrip(t *testing.T) {
	for _, s := range []string{"", "a", "é", "\xff\xfe", "éé", "÷×"} {
		if _, err := New([]string{s}); err == nil {
			t.Errorf("added token %q was accepted", s)
		}
	}
	if _, err := New([]string{"ab", "ab"}); err == nil {
		t.Error("a token given twice was accepted")
	}
}

func FuzzRoundTrip(f *testing.F) {
	for _, s := range []string{"", "abcde//<|im_end|>", "\x00\xff\xc3", "1 ÷ 2 × 3", "<|im_start|>user\nabcd"} {
		f.Add(s)
	}
	tok := sample(f)
	f.Fuzz(func(t *testing.T, text string) {
		if got := tok.Decode(tok.Encode(text)); got != text {
			t.Fatalf("round trip of %q gave %q", text, got)
		}
	})
}

func TestEncodeAgreesWithSlowReference(t *testing.T) {
	tok := sample(t)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		text := randomText(rng, sampleAdded)
		if d := cmp.Diff(slowEncode(tok, text), tok.Encode(text)); d != "" {
			t.Fatalf("encode %q (-slow +fast):\n%s", text, d)
		}
	}
}

// slowEncode tries every added token at every position.
func slowEncode(tok *Tokenizer, text string) []int32 {
	ids := []int32{}
	for len(text) > 0 {
		best := ""
		for _, s := range sampleAdded {
			if strings.HasPrefix(text, s) && len(s) > len(best) {
				best = s
			}
		}
		if id, ok := tok.ID(best); ok {
			ids, text = append(ids, id), text[len(best):]
			continue
		}
		ids, text = append(ids, int32(text[0])), text[1:]
	}
	return ids
}

// randomText mixes pieces of the added tokens with other characters, always valid UTF-8.
func randomText(rng *rand.Rand, added []string) string {
	var b strings.Builder
	for range rng.IntN(12) {
		switch rng.IntN(3) {
		case 0:
			b.WriteString(added[rng.IntN(len(added))])
		case 1:
			s := added[rng.IntN(len(added))]
			b.WriteString(strings.ToValidUTF8(s[:rng.IntN(len(s))], ""))
		default:
			b.WriteRune([]rune("abcde/ é字\n\x00\u00ad~Ġ0")[rng.IntN(15)])
		}
	}
	return b.String()
}

func TestFilesAreDeterministicAndLoad(t *testing.T) {
	tok := sample(t)
	files := tok.Files()
	for name, want := range sample(t).Files() {
		if !bytes.Equal(files[name], want) {
			t.Errorf("%s differs between two equal tokenizers", name)
		}
	}
	back, err := Load(files["tokenizer.json"])
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(tok.added, back.added); d != "" {
		t.Errorf("loaded tokens (-want +got):\n%s", d)
	}
}

func TestLoadRefusesOtherTokenizers(t *testing.T) {
	good := string(sample(t).Files()["tokenizer.json"])
	for name, change := range map[string][2]string{
		"merges":     {`"merges": []`, `"merges": [["a","b"]]`},
		"model":      {`"type": "BPE"`, `"type": "Unigram"`},
		"pattern":    {`"use_regex": false`, `"use_regex": true`},
		"byte id":    {`"a": 97`, `"a": 98`},
		"added id":   {`"id": 256`, `"id": 300`},
		"normalized": {`"normalized": false`, `"normalized": true`},
		"normalizer": {`"normalizer": null`, `"normalizer": {"type": "NFC"}`},
		"cut":        {"\n}", ""},
	} {
		bad := strings.Replace(good, change[0], change[1], 1)
		if bad == good {
			t.Fatalf("%s: the change does not apply", name)
		}
		if _, err := Load([]byte(bad)); err == nil {
			t.Errorf("%s: loaded", name)
		}
	}
}
