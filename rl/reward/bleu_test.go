package reward

import (
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// slowBLEU is short-form BLEU written from its equations alone: n-grams as strings, counted again
// for each of them.
func slowBLEU(candidate []string, references [][]string, smoothing float64) float64 {
	if len(candidate) == 0 || len(references) == 0 {
		return 0
	}
	grams := func(tokens []string, n int) []string {
		var out []string
		for i := 0; i+n <= len(tokens); i++ {
			out = append(out, strings.Join(tokens[i:i+n], "\x00"))
		}
		return out
	}
	occurs := func(list []string, g string) (n int) {
		for _, x := range list {
			if x == g {
				n++
			}
		}
		return n
	}
	orders := min(4, len(candidate))
	product := 1.0
	for n := 1; n <= orders; n++ {
		have, matches := grams(candidate, n), 0.0
		for i, g := range have {
			if slices.Contains(have[:i], g) {
				continue
			}
			most := 0
			for _, r := range references {
				most = max(most, occurs(grams(r, n), g))
			}
			matches += float64(min(occurs(have, g), most))
		}
		if matches == 0 {
			matches = smoothing
		}
		product *= math.Pow(matches/float64(len(have)), 1/float64(orders))
	}
	lengths := make([]int, len(references))
	for i, r := range references {
		lengths[i] = len(r)
	}
	slices.Sort(lengths)
	r := lengths[0]
	for _, l := range lengths {
		if math.Abs(float64(l-len(candidate))) < math.Abs(float64(r-len(candidate))) {
			r = l
		}
	}
	if len(candidate) <= r {
		product *= math.Exp(1 - float64(r)/float64(len(candidate)))
	}
	return product
}

func TestBLEUAgainstItsEquations(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	words := strings.Fields("a b c d")
	text := func() []string {
		out := make([]string, rng.IntN(9))
		for i := range out {
			out[i] = words[rng.IntN(len(words))]
		}
		return out
	}
	positive := 0
	for range 5000 {
		candidate, references := text(), make([][]string, rng.IntN(4))
		for i := range references {
			references[i] = text()
		}
		for _, smoothing := range []float64{0, 0.1} {
			b := BLEU{Smoothing: smoothing}
			got, want := b.Score(candidate, references), slowBLEU(candidate, references, smoothing)
			if math.Abs(got-want) > 1e-12 || got < 0 || got > 1 {
				t.Fatalf("%v against %v, smoothing %g: %g, want %g", candidate, references, smoothing, got, want)
			}
			if got > 0 && smoothing == 0 {
				positive++
			}
			rng.Shuffle(len(references), func(i, j int) { references[i], references[j] = references[j], references[i] })
			if again := b.Score(candidate, references); again != got {
				t.Fatalf("%v against %v: %g in another order, %g", candidate, references, again, got)
			}
		}
	}
	if positive < 500 {
		t.Errorf("only %d of 5000 pairs have a match", positive)
	}
}

func TestBLEUDegenerate(t *testing.T) {
	tests := []struct {
		name       string
		bleu       BLEU
		candidate  []string
		references [][]string
		want       float64
	}{
		{"nothing", BLEU{}, nil, nil, 0},
		{"no candidate", BLEU{Smoothing: 0.1}, nil, [][]string{{"a"}}, 0},
		{"no reference", BLEU{Smoothing: 0.1}, []string{"a"}, nil, 0},
		{"empty reference", BLEU{}, []string{"a"}, [][]string{{}}, 0},
		{"empty reference, smoothed", BLEU{Smoothing: 0.1}, []string{"a"}, [][]string{{}}, 0.1},
		{"standard, three tokens", BLEU{Standard: true}, []string{"a", "b", "c"}, [][]string{{"a", "b", "c"}}, 0},
		{
			"standard, four tokens", BLEU{Standard: true}, []string{"a", "b", "c", "d"},
			[][]string{{"a", "b", "c", "d"}}, 1,
		},
		{
			"nearest length, ties to the shorter", BLEU{}, []string{"a", "b"},
			[][]string{{"a", "b", "c"}, {"a"}, {"x", "a", "b"}}, 1,
		},
	}
	for _, tt := range tests {
		if got := tt.bleu.Score(tt.candidate, tt.references); !near(got, tt.want) {
			t.Errorf("%s: %g, want %g", tt.name, got, tt.want)
		}
	}
}

func TestTokenizeQA(t *testing.T) {
	tests := []struct {
		text string
		want []string
	}{
		{"", []string{}}, {"The end.", []string{"end"}}, {"New  York\tCity", []string{"new", "york", "city"}},
		{"北京大学", []string{"北", "京", "大", "学"}}, {"在Paris的2家", []string{"在", "paris", "的", "2", "家"}},
		{"カレー", []string{"カ", "レ", "ー"}}, {"서울 시", []string{"서울", "시"}}, {"日々。", []string{"日", "々", "。"}},
	}
	for _, tt := range tests {
		if got := TokenizeQA(tt.text); !reflect.DeepEqual(got, tt.want) {
			t.Errorf("%q: %q, want %q", tt.text, got, tt.want)
		}
	}
}

func FuzzBLEU(f *testing.F) {
	f.Add("new york", "new york city", "york")
	f.Add("the the the", "the cat sat", "")
	f.Add("", "", "")
	f.Add("北京 a the", "\xff北", "an")
	f.Fuzz(func(t *testing.T, candidate, one, two string) {
		exact := BLEU{}.ScoreText(candidate, []string{one, two})
		smooth := BLEU{Smoothing: 0.1}.ScoreText(candidate, []string{one, two})
		standard := BLEU{Standard: true}.ScoreText(candidate, []string{one, two})
		if !(exact >= 0 && exact <= 1 && smooth >= exact && smooth <= 1) {
			t.Errorf("%q: BLEU %g, smoothed %g", candidate, exact, smooth)
		}
		if tokens := TokenizeQA(candidate); standard > exact || len(tokens) >= maxOrder && standard != exact {
			t.Errorf("%q: standard %g, short %g", candidate, standard, exact)
		}
		if exact != (BLEU{}).ScoreText(candidate, []string{two, one}) {
			t.Errorf("%q: the order of references matters", candidate)
		}
		if same := (BLEU{}).ScoreText(candidate, []string{candidate}); (same == 1) != (len(TokenizeQA(candidate)) > 0) {
			t.Errorf("%q against itself: %g", candidate, same)
		}
	})
}
