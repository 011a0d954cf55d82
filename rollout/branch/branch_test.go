package branch

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

var vocabulary = TopK{Vocabulary: 151936}

// shannon is the entropy of a whole distribution.
func shannon(p []float64) float64 {
	h := 0.0
	for _, v := range p {
		h -= v * math.Log(v)
	}
	return h
}

func TestEntropyOfAWholeDistribution(t *testing.T) {
	// Where the top tokens are all there are, every mode is Shannon's entropy.
	p := []float64{0.5, 0.25, 0.125, 0.125}
	var logs []float64
	for _, v := range p {
		logs = append(logs, math.Log(v))
	}
	for _, mode := range []EntropyMode{"", Released, MeanRenorm, MeanTail} {
		k := TopK{Mode: mode, Vocabulary: 4}
		if h, err := k.Position(logs); err != nil || math.Abs(h-shannon(p)) > 1e-12 {
			t.Errorf("%q: %g, %v; want %g", mode, h, err, shannon(p))
		}
		uniform := slices.Repeat([]float64{math.Log(0.25)}, 4)
		if h, err := k.Position(uniform); err != nil || math.Abs(k.Normalise(h)-1) > 1e-12 {
			t.Errorf("%q: a uniform distribution has %g of ln V, %v", mode, k.Normalise(h), err)
		}
	}
}

func TestEntropyModes(t *testing.T) {
	logs := []float64{math.Log(0.6), math.Log(0.2)}
	for mode, want := range map[EntropyMode]float64{
		Released:   -0.6*math.Log(0.6) - 0.2*math.Log(0.2),
		MeanRenorm: shannon([]float64{0.75, 0.25}),
		MeanTail:   shannon([]float64{0.6, 0.2, 0.2}),
	} {
		k := TopK{Mode: mode, Vocabulary: 100}
		h, err := k.Position(logs)
		if err != nil || math.Abs(h-want) > 1e-12 {
			t.Errorf("%s: %g, %v; want %g", mode, h, err, want)
		}
		segment, err := k.Segment([][]float64{logs, logs, logs})
		if mode == Released {
			want *= 3 // the release sums over positions
		}
		if err != nil || math.Abs(segment-want) > 1e-12 {
			t.Errorf("%s: a segment has %g, %v; want %g", mode, segment, err, want)
		}
	}
}

func TestEntropyLimitsAndOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	top := make([][]float64, 25)
	for i := range top {
		for range 14 {
			top[i] = append(top[i], -5*rng.Float64()-1)
		}
	}
	for _, mode := range []EntropyMode{Released, MeanRenorm, MeanTail} {
		k := TopK{Mode: mode, Vocabulary: 1000}
		whole, err := k.Segment(top)
		if err != nil {
			t.Fatal(err)
		}
		if first, _ := k.Segment(top[:20]); first != whole {
			t.Errorf("%s: tokens after the 20th count", mode)
		}
		var cut [][]float64
		for _, logs := range top {
			sorted := slices.Clone(logs)
			slices.Sort(sorted)
			slices.Reverse(sorted)
			cut = append(cut, sorted[:10])
		}
		if ten, _ := k.Segment(cut); ten != whole {
			t.Errorf("%s: order, or tokens after the 10th, count", mode)
		}
		for _, empty := range [][][]float64{nil, {{}}, {{math.Inf(-1)}}, {{0}}} {
			if h, err := k.Segment(empty); h != 0 || err != nil {
				t.Errorf("%s: %v has %g, %v", mode, empty, h, err)
			}
		}
	}
}

func TestEntropyRefuses(t *testing.T) {
	for name, k := range map[string]TopK{
		"vocabulary": {}, "mode": {Mode: "x", Vocabulary: 9}, "positions": {Positions: -1, Vocabulary: 9},
		"width": {Width: -1, Vocabulary: 9},
	} {
		if _, err := k.Segment(nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for _, bad := range []float64{math.NaN(), 0.1, math.Inf(1)} {
		if _, err := vocabulary.Segment([][]float64{{-1}, {-1, bad}}); err == nil {
			t.Errorf("a log-probability of %g is taken", bad)
		}
	}
}

// What the scales do to AEPO's budget of 16 with β = 0.2: a difference of 5 nats moves it by 4 samples in nats, as
// equation 5 is printed, and not at all where entropies are divided by ln V or by V.
func TestScalesAndTheBudget(t *testing.T) {
	for scale, want := range map[EntropyScale]int{"": 8, ScaleLnV: 8, ScaleV: 8, ScaleNats: 12} {
		k := TopK{Scale: scale, Vocabulary: 151936}
		if roots, _, err := DefaultBudget.Split(k.Normalise(9), k.Normalise(4)); err != nil || roots != want {
			t.Errorf("%q: %d roots, %v; want %d", scale, roots, err, want)
		}
	}
	k := TopK{Scale: ScaleV, Vocabulary: 1000}
	if got := k.Change(9, 4); math.Abs(got-0.005) > 1e-15 {
		t.Errorf("ΔH %g, want 5/1000", got)
	}
}

func TestBudget(t *testing.T) {
	for _, tt := range []struct {
		b           Budget
		root, tool  float64
		roots, rest int
	}{
		{Budget{Total: 16, Sensitivity: 0.2}, 1, 1, 8, 8},
		{Budget{Total: 15, Sensitivity: 0.2}, 1, 1, 8, 7}, // 7.5 rounds up
		{Budget{Total: 15, Sensitivity: 0.2, Rounding: Floor1}, 1, 1, 8, 7},
		{Budget{Total: 16, Sensitivity: 0.2, Rounding: Floor1}, 1, 1, 9, 7},
		{Budget{Total: 16, Sensitivity: 9}, 99, 0, 16, 0},
		{Budget{Total: 16, Sensitivity: 9, KeepBranch: true}, 99, 0, 15, 1},
		{Budget{Total: 16, Sensitivity: 9}, 0, 1e6, 1, 15},
		{Budget{Total: 1, Sensitivity: 9}, 0, 99, 1, 0},
	} {
		roots, rest, err := tt.b.Split(tt.root, tt.tool)
		if err != nil || roots != tt.roots || rest != tt.rest {
			t.Errorf("%+v of %g and %g: %d and %d, %v", tt.b, tt.root, tt.tool, roots, rest, err)
		}
	}
	for name, b := range map[string]Budget{
		"total": {}, "branch": {Total: 1, KeepBranch: true}, "sensitivity": {
			Total: 2, Sensitivity: math.NaN(),
		}, "rounding": {Total: 2, Rounding: "up"},
	} {
		if _, _, err := b.Split(0, 0); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if _, _, err := DefaultBudget.Split(math.NaN(), 0); err == nil {
		t.Error("an entropy of NaN is taken")
	}
}

func TestToolAverage(t *testing.T) {
	if h, ok := ToolAverage(9, []float64{1, 2}, false); !ok || h != 1.5 {
		t.Errorf("%g, %v", h, ok)
	}
	if h, ok := ToolAverage(9, []float64{1, 2}, true); !ok || h != 4 {
		t.Errorf("with the root %g, %v", h, ok)
	}
	if h, ok := ToolAverage(9, nil, false); ok || h != 0 {
		t.Errorf("without tools %g, %v", h, ok)
	}
}

func fixed(base float64) *float64 { return &base }

func TestStreaksLowerTheProbability(t *testing.T) {
	r := PaperRule
	r.FixedBase = fixed(0.9)
	lnV := math.Log(float64(vocabulary.Vocabulary))
	c, budget, streaks := Chain{Root: 1}, 10, []int{}
	for range 6 { // P = 0.92·(1 − 0.2 l): .92, .736, .552, .368 | .92 …
		d, next, err := r.Decide(vocabulary, c, 1+0.1*lnV, budget, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want := 0.92 * (1 - 0.2*float64(c.Streak)); math.Abs(d.Probability-want) > 1e-12 ||
			math.Abs(d.Change-0.1) > 1e-12 {
			t.Errorf("streak %d: %+v, want P %g", c.Streak, d, want)
		}
		c, budget = next, budget-d.Copies
		streaks = append(streaks, c.Streak)
	}
	if !slices.Equal(streaks, []int{1, 2, 3, 0, 1, 2}) || budget != 5 {
		t.Errorf("streaks %v, %d branches left", streaks, budget)
	}
}

func TestStreakAsPrinted(t *testing.T) {
	r := Rule{EntropyWeight: 0.2, Slope: 0.2, Threshold: 0.5, FixedBase: fixed(0.45), Streak: StreakPasses}
	c := Chain{Root: 1}
	for i, tt := range []struct {
		h              float64
		copies, streak int
	}{{2, 0, 1}, {0.5, 0, 1}, {1e9, 1, 1}, {3, 0, 2}} {
		d, next, err := r.Decide(vocabulary, c, tt.h, 5, nil)
		if err != nil || d.Copies != tt.copies || next.Streak != tt.streak {
			t.Errorf("decision %d: %+v, streak %d, %v", i, d, next.Streak, err)
		}
		c = next
	}
}

func TestDecideWithinTheBudget(t *testing.T) {
	r := Rule{Threshold: 0.5, Copies: 3}
	draws := 0
	high := func() float64 { draws++; return 0.99 }
	for budget, copies := range map[int]int{5: 3, 3: 3, 2: 2, 0: 0} {
		if d, _, err := r.Decide(vocabulary, Chain{}, 1, budget, high); err != nil || d.Copies != copies {
			t.Errorf("budget %d: %+v, %v", budget, d, err)
		}
	}
	if draws != 3 {
		t.Errorf("%d draws, of which one for an empty budget", draws)
	}
	if d, c, err := r.Decide(
		vocabulary, Chain{Streak: 4}, 1, 0, high,
	); err != nil || c.Streak != 0 || d.Probability != 0 {
		t.Errorf("%+v, %+v, %v", d, c, err)
	}
	for _, h := range []float64{math.NaN(), math.Inf(1)} {
		if _, _, err := r.Decide(vocabulary, Chain{}, h, 1, high); err == nil {
			t.Errorf("an entropy of %g is taken", h)
		}
	}
}

func TestThresholds(t *testing.T) {
	if PaperRule.Branches(0.5) || !PaperRule.Branches(0.5000001) || !ReleaseRule.Branches(0.5) ||
		ReleaseRule.Branches(0.4999999) {
		t.Error("the paper branches above the threshold, the release at it too")
	}
	if !DefaultARPO.Branches(0.5) || DefaultARPO.Branches(0.5000001) {
		t.Error("ARPO branches up to the threshold")
	}
	if p := DefaultARPO.Probability(0.55, 0.5); math.Abs(p-0.45) > 1e-15 || DefaultARPO.Probability(0.1, 9) != 0 ||
		DefaultARPO.Probability(0.9, -9) != 1 {
		t.Errorf("P %g", p)
	}
}

// Over random draws the rules branch as often as their probabilities say: a rising entropy more often.
func TestBranchingRates(t *testing.T) {
	source := rand.New(rand.NewPCG(1, 1))
	lnV := math.Log(float64(vocabulary.Vocabulary))
	const n = 20000
	for _, change := range []float64{-0.5, 0, 0.5} {
		aepo, arpo := 0.0, 0.0
		for range n {
			d, _, err := PaperRule.Decide(vocabulary, Chain{}, change*lnV, 1, source.Float64)
			if err != nil {
				t.Fatal(err)
			}
			aepo += float64(d.Copies) / n
			if DefaultARPO.Branches(DefaultARPO.Probability(source.Float64(), change)) {
				arpo += 1.0 / n
			}
		}
		want := 0.5 + 0.2*change // both, from U + 0.2ΔH > 0.5 and U − 0.2ΔH ≤ 0.5
		if bound := 5 * math.Sqrt(0.25/n); math.Abs(aepo-want) > bound || math.Abs(arpo-want) > bound {
			t.Errorf("ΔH %g: AEPO branches %.3f and ARPO %.3f of the time, want %.3f", change, aepo, arpo, want)
		}
	}
}

func TestRulesValidate(t *testing.T) {
	for _, ok := range []interface{ Validate() error }{PaperRule, ReleaseRule, DefaultARPO, DefaultBudget} {
		if err := ok.Validate(); err != nil {
			t.Error(err)
		}
	}
	nan := math.NaN()
	for name, bad := range map[string]interface{ Validate() error }{
		"weight": Rule{EntropyWeight: nan}, "slope": Rule{Slope: -1}, "threshold": Rule{Threshold: 2},
		"base":   Rule{FixedBase: &nan},
		"copies": Rule{Copies: -1}, "streak": Rule{Streak: "x"}, "arpo weight": ARPO{EntropyWeight: nan},
		"arpo threshold": ARPO{Threshold: nan},
	} {
		if bad.Validate() == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
