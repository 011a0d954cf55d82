package diagnose

import (
	"errors"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
)

func near(t *testing.T, name string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-12*max(1, math.Abs(want)) {
		t.Errorf("%s is %.15g, want %.15g", name, got, want)
	}
}

func TestEntropy(t *testing.T) {
	var e Entropy
	rows := []Row{
		{Mask: []int32{1, 0, 1}, Entropy: []float64{1, 100, 2}},
		{Mask: []int32{0, 0}, Entropy: []float64{5, 5}}, // dead
		{Mask: []int32{1}, Entropy: []float64{6}},
	}
	if err := e.Add(rows...); err != nil {
		t.Fatal(err)
	}
	got := e.Report()
	if got.Rows != 2 || got.Tokens != 3 {
		t.Errorf("%d rows and %d tokens, want 2 and 3", got.Rows, got.Tokens)
	}
	near(t, "token mean", got.TokenMean, 3)
	near(t, "sum by row", got.SeqMeanTokenSum, 4.5)
}

func TestKL(t *testing.T) {
	var k KL
	err := k.Add(
		Row{
			Mask: []int32{1, 0, 1}, LogProbs: []float64{-1, -9, -0.5}, Reference: []float64{-1.2, 0, -0.5},
			Old: []float64{-0.9, 0, -0.8},
		},
		Row{Mask: []int32{1}, LogProbs: []float64{-1}, Old: []float64{-2}}, // no reference
	)
	if err != nil {
		t.Fatal(err)
	}
	got := k.Report()
	if got.ReferenceTokens != 2 || got.OldTokens != 3 {
		t.Errorf("%d and %d tokens, want 2 and 3", got.ReferenceTokens, got.OldTokens)
	}
	near(t, "k1", got.K1, 0.1)
	near(t, "k3", got.K3, (math.Exp(-0.2)-1+0.2)/2)
	near(t, "off-policy", got.OffPolicy, (0.1-0.3-1)/3)
	if got.WeightedTokens != 2 {
		t.Errorf("%d weighted tokens, want 2", got.WeightedTokens)
	}
	near(t, "weighted k3", got.Weighted, math.Exp(-0.1)*(math.Exp(-0.2)-1+0.2)/2)
}

// Over the tokens that an old policy draws, each as often as it draws it, the weighted k3 is the divergence itself.
func TestTheWeightedKLIsUnbiased(t *testing.T) {
	logs := func(p ...float64) []float64 {
		for i := range p {
			p[i] = math.Log(p[i])
		}
		return p
	}
	var k KL
	err := k.Add(Row{ // three tokens, of which the old policy draws the first half of the time
		Mask: []int32{1, 1, 1, 1}, Old: logs(0.5, 0.5, 0.25, 0.25), LogProbs: logs(0.25, 0.25, 0.5, 0.25),
		Reference: logs(0.25, 0.25, 0.25, 0.5),
	})
	if err != nil {
		t.Fatal(err)
	}
	near(t, "weighted k3", k.Report().Weighted, 0.5*math.Log(2)+0.25*math.Log(0.5))
}

func TestEightGroups(t *testing.T) {
	g, err := NewEightGroups(0.5)
	if err != nil {
		t.Fatal(err)
	}
	samples := []Sample{
		{Advantage: 2, Ratio: 1.1, Entropy: 0.9, KL: 1},
		{Advantage: 1, Ratio: 1.3, Entropy: 0.9, KL: 2},
		{Advantage: -1, Ratio: 1, Entropy: 0.5, KL: 5}, // both at their bounds
		{Advantage: 0, Ratio: 9, Entropy: 9, KL: 9},
	}
	if err := g.Add(samples...); err != nil {
		t.Fatal(err)
	}
	want := map[string]EightGroup{
		"A+|IS>1|H+":  {Count: 2, Ratio: 1.2, KLShare: 3.0 / 8},
		"A-|IS<=1|H-": {Count: 1, Ratio: 1, KLShare: 5.0 / 8},
	}
	names := map[string]bool{}
	for _, got := range g.Report() {
		names[got.Name()] = true
		w := want[got.Name()]
		if got.Count != w.Count {
			t.Errorf("%s has %d samples, want %d", got.Name(), got.Count, w.Count)
		}
		near(t, got.Name()+" ratio", got.Ratio, w.Ratio)
		near(t, got.Name()+" share", got.KLShare, w.KLShare)
	}
	if len(names) != 8 {
		t.Errorf("names of the groups: %v", names)
	}
	near(t, "median entropy", MedianEntropy(samples), 0.9)
}

func TestSamples(t *testing.T) {
	got, err := Samples([]Row{
		{},
		{
			Mask:       []int32{1, 0, 1},
			LogProbs:   []float64{-1, 0, -1},
			Old:        []float64{-1.2, 0, -1.4},
			Reference:  []float64{-1, 0, -1.2},
			Advantages: []float64{1, 0, 2},
			Entropy:    []float64{0.5, 0, 1},
		},
	})
	if err != nil || len(got) != 1 {
		t.Fatalf("got %v (%v), want the live row alone", got, err)
	}
	near(t, "advantage", got[0].Advantage, 1.5)
	near(t, "ratio", got[0].Ratio, math.Exp(0.3))
	near(t, "entropy", got[0].Entropy, 0.75)
	near(t, "KL", got[0].KL, (math.Exp(-0.2)-1+0.2)/2)
}

// A tool speaks twice: the two tokens after it reflect, the others reason.
func TestHesitation(t *testing.T) {
	h := Hesitation{Window: 2}
	row := Row{
		Mask:    []int32{0, 1, 1, 0, 0, 1, 1, 1, 1, 0, 1, 1},
		Entropy: []float64{9, 1, 6, 9, 9, 6, 1, 4, 1, 9, 7, 0},
	}
	if err := h.Add(row); err != nil {
		t.Fatal(err)
	}
	got := h.Report()
	want := HesitationReport{
		Tokens: 8, Threshold: 6, // 7 and the tied 6 and 6 of 8 tokens: ⌈1.6⌉
		Forking: 1.0 / 3, Reflection: 2.0 / 3, ReasoningDensity: 1.0 / 4, ReflectionDensity: 2.0 / 4,
	}
	if got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	flat := Hesitation{}
	if err := flat.Add(Row{Mask: []int32{1, 1}, Entropy: []float64{2, 2}}); err != nil {
		t.Fatal(err)
	}
	if got := flat.Report(); got.Forking != 1 || got.Reflection != 0 || got.ReflectionDensity != 0 {
		t.Errorf("tokens that tie: %+v, want all of them high", got)
	}
}

// A row that breaks an invariant is refused by row and token, and nothing of the call is kept.
func TestBadRowsAreRefusedByName(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 16))
	fresh := func() Row {
		r := randomRows(rng, 1)[0]
		for len(r.Mask) < 5 {
			r = randomRows(rng, 1)[0]
		}
		r.Mask[3] = 1
		return r
	}
	tests := []struct {
		name, want string
		spoil      func(*Row)
	}{
		{"mask", "mask of row 1, token 3 is 2", func(r *Row) { r.Mask[3] = 2 }},
		{"NaN", "row 1, token 3 is NaN", func(r *Row) { r.LogProbs[3], r.Entropy[3] = math.NaN(), math.NaN() }},
		{
			"infinity", "row 1, token 3 is -Inf",
			func(r *Row) { r.LogProbs[3], r.Entropy[3] = math.Inf(-1), math.Inf(-1) },
		},
		{"length", "row 1 has", func(r *Row) { r.LogProbs, r.Entropy = r.LogProbs[1:], r.Entropy[1:] }},
	}
	for _, tt := range tests {
		bad := fresh()
		tt.spoil(&bad)
		var e Entropy
		var k KL
		var h Hesitation
		for i, add := range []func(...Row) error{e.Add, k.Add, h.Add} {
			if err := add(fresh(), bad); !errors.Is(err, ErrBadInput) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%s, gathering %d: error %v does not say %q", tt.name, i, err, tt.want)
			}
		}
		if _, err := Samples([]Row{fresh(), bad}); !errors.Is(err, ErrBadInput) {
			t.Errorf("%s: samples gave %v", tt.name, err)
		}
		if e.Report().Tokens+k.Report().OldTokens+h.Report().Tokens != 0 {
			t.Errorf("%s: part of a refused call was kept", tt.name)
		}
	}
	positive := fresh()
	positive.Old[3] = 0.5
	if err := new(KL).Add(positive); err == nil || !strings.Contains(
		err.Error(), "old log-probability of row 0, token 3",
	) {
		t.Errorf("a log-probability above 0 gave %v", err)
	}
}
