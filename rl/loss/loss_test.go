package loss

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
)

func near(a, b, tolerance float64) bool {
	return math.Abs(a-b) <= tolerance*(1+math.Abs(a)+math.Abs(b))
}

// randomRows draws ragged rows, some dead, with ratios spread over every region.
func randomRows(rng *rand.Rand, n int) []Row[float64] {
	rows := make([]Row[float64], n)
	for i := range rows {
		length := 1 + rng.IntN(6)
		r := Row[float64]{Count: int32(1 + rng.IntN(4))}
		advantage := rng.NormFloat64()
		dead := rng.IntN(6) == 0
		for range length {
			old := -0.01 - 3*rng.Float64()
			mask := int32(rng.IntN(2))
			if rng.IntN(3) > 0 {
				mask = 1
			}
			if dead {
				mask = 0
			}
			r.Old = append(r.Old, old)
			r.LogProbs = append(r.LogProbs, old+rng.NormFloat64())
			r.Advantages = append(r.Advantages, advantage)
			r.Mask = append(r.Mask, mask)
		}
		rows[i] = r
	}
	return rows
}

func shapes(rows []Row[float64]) (masks [][]int32, counts []int32) {
	for _, r := range rows {
		masks, counts = append(masks, r.Mask), append(counts, r.Count)
	}
	return masks, counts
}

func denominator(t *testing.T, mode Mode, rows []Row[float64]) Denominator {
	t.Helper()
	masks, counts := shapes(rows)
	d, err := Aggregation{Mode: mode, Horizon: 7}.Denominator(masks, counts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func evaluate(t *testing.T, rows []Row[float64], d Denominator) Result[float64] {
	t.Helper()
	got, err := Evaluate(PPOClip{Low: 0.2, High: 0.28, Dual: 3}, rows, d)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestCotangentsAreCentralDifferences(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	const h = 1e-6
	for range 40 {
		rows := randomRows(rng, 5)
		for _, mode := range Modes() {
			d := denominator(t, mode, rows)
			got := evaluate(t, rows, d)
			for i := range rows {
				for k := range rows[i].LogProbs {
					at := rows[i].LogProbs[k]
					ratio := math.Exp(at - rows[i].Old[k])
					if math.Abs(ratio-0.8) < 1e-4 || math.Abs(ratio-1.28) < 1e-4 || math.Abs(ratio-3) < 1e-4 {
						continue // a kink has no derivative
					}
					rows[i].LogProbs[k] = at + h
					up := evaluate(t, rows, d).Loss
					rows[i].LogProbs[k] = at - h
					down := evaluate(t, rows, d).Loss
					rows[i].LogProbs[k] = at
					if want := (up - down) / (2 * h); !near(got.Cotangents[i][k], want, 1e-6) {
						t.Fatalf(
							"%s row %d token %d: cotangent %g, difference %g", mode, i, k, got.Cotangents[i][k], want,
						)
					}
				}
			}
		}
	}
}

func TestMicrobatchesAddUp(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		rows := randomRows(rng, 8)
		for _, mode := range Modes() {
			d := denominator(t, mode, rows)
			whole, parts := evaluate(t, rows, d), Result[float64]{}
			for from := 0; from < len(rows); {
				to := min(len(rows), from+1+rng.IntN(3))
				part := evaluate(t, rows[from:to], d)
				parts.Loss += part.Loss
				parts.Tally.Merge(part.Tally)
				parts.Cotangents = append(parts.Cotangents, part.Cotangents...)
				from = to
			}
			if !near(parts.Loss, whole.Loss, 1e-12) || !near(parts.Tally.KL(), whole.Tally.KL(), 1e-12) ||
				parts.Tally.RatioMax() != whole.Tally.RatioMax() || parts.Tally.RatioMin() != whole.Tally.RatioMin() ||
				!near(
					parts.Tally.ClipFraction(), whole.Tally.ClipFraction(), 1e-12,
				) || parts.Tally.Tokens != whole.Tally.Tokens ||
				parts.Tally.Rows != whole.Tally.Rows || parts.Tally.Drift() != whole.Tally.Drift() {
				t.Fatalf("%s: parts %+v, whole %+v", mode, parts, whole)
			}
			for i := range rows {
				for k, w := range whole.Cotangents[i] {
					if parts.Cotangents[i][k] != w {
						t.Fatalf("%s: cotangent of row %d token %d depends on the cut", mode, i, k)
					}
				}
			}
		}
	}
}

// A row of count N and advantage A·ω stands for N rows of advantage A·ω/N.
func TestCountEqualsCopies(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for range 60 {
		rows := randomRows(rng, 6)
		var copies []Row[float64]
		var origin []int
		for i, r := range rows {
			for range r.Count {
				c := Row[float64]{LogProbs: r.LogProbs, Old: r.Old, Mask: r.Mask, Count: 1}
				for _, a := range r.Advantages {
					c.Advantages = append(c.Advantages, a/float64(r.Count))
				}
				copies, origin = append(copies, c), append(origin, i)
			}
		}
		for _, mode := range Modes() {
			once := evaluate(t, rows, denominator(t, mode, rows))
			many := evaluate(t, copies, denominator(t, mode, copies))
			if !near(once.Loss, many.Loss, 1e-12) || !near(once.Tally.KL(), many.Tally.KL(), 1e-12) ||
				!near(once.Tally.ClipFraction(), many.Tally.ClipFraction(), 1e-12) ||
				!near(once.Tally.LowerClipFraction(), many.Tally.LowerClipFraction(), 1e-12) {
				t.Fatalf(
					"%s: loss %g and %g, kl %g and %g", mode, once.Loss, many.Loss, once.Tally.KL(), many.Tally.KL(),
				)
			}
			sums := make([][]float64, len(rows))
			for c, i := range origin {
				if sums[i] == nil {
					sums[i] = make([]float64, len(rows[i].Mask))
				}
				for k, v := range many.Cotangents[c] {
					sums[i][k] += v
				}
			}
			for i := range rows {
				for k, v := range once.Cotangents[i] {
					if !near(v, sums[i][k], 1e-12) {
						t.Fatalf("%s: cotangent of row %d token %d is %g, of its copies %g", mode, i, k, v, sums[i][k])
					}
				}
			}
			entropyOnce, entropyMany := entropyOf(t, mode, rows), entropyOf(t, mode, copies)
			if !near(entropyOnce, entropyMany, 1e-12) {
				t.Fatalf("%s: entropy %g and %g", mode, entropyOnce, entropyMany)
			}
		}
	}
}

// entropyOf aggregates a stand-in for per-token entropies.
func entropyOf(t *testing.T, mode Mode, rows []Row[float64]) float64 {
	t.Helper()
	masks, counts := shapes(rows)
	values := make([][]float64, len(rows))
	for i, r := range rows {
		values[i] = r.Old
	}
	v, err := denominator(t, mode, rows).Aggregate(values, masks, counts)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestDeadRowsCountNowhere(t *testing.T) {
	live := Row[float64]{
		LogProbs: []float64{-1, -2}, Old: []float64{-1.1, -2}, Advantages: []float64{1, 1}, Mask: []int32{1, 1},
		Count: 1,
	}
	dead := Row[float64]{
		LogProbs: []float64{math.NaN()}, Old: []float64{math.Inf(1)}, Advantages: []float64{math.NaN()},
		Mask: []int32{0}, Count: 3,
	}
	for _, mode := range Modes() {
		alone := evaluate(t, []Row[float64]{live}, denominator(t, mode, []Row[float64]{live}))
		both := evaluate(t, []Row[float64]{live, dead}, denominator(t, mode, []Row[float64]{live, dead}))
		if alone.Loss != both.Loss || alone.Tally != both.Tally || both.Cotangents[1][0] != 0 {
			t.Errorf("%s: a dead row changed %+v to %+v", mode, alone, both)
		}
		none := evaluate(t, []Row[float64]{dead}, denominator(t, mode, []Row[float64]{dead}))
		if none.Loss != 0 || none.Tally.RatioMax() != 0 || none.Tally.KL() != 0 {
			t.Errorf("%s: no live row gives %+v", mode, none)
		}
	}
}

func TestStatistics(t *testing.T) {
	l := func(ratio float64) float64 { return -3 + math.Log(ratio) }
	row := Row[float64]{
		LogProbs:   []float64{l(1.5), l(0.5), l(4), l(1), l(9), -3, l(1.4), l(0.5)},
		Old:        []float64{-3, -3, -3, -3, -3, -3, -3, -3},
		Advantages: []float64{1, -1, -1, 1, 0, 1, 2, 1},
		Mask:       []int32{1, 1, 1, 1, 1, 0, 1, 1},
		Count:      1,
	}
	tally := evaluate(t, []Row[float64]{row}, denominator(t, TokenMean, []Row[float64]{row})).Tally
	wantKL := -(math.Log(1.5) + 2*math.Log(0.5) + math.Log(4) + math.Log(9) + math.Log(1.4)) / 7
	for name, pair := range map[string][2]float64{
		"clip fraction": {tally.ClipFraction(), 3.0 / 7}, "lower": {
			tally.LowerClipFraction(), 1.0 / 7,
		}, "kl": {tally.KL(), wantKL},
		"ratio max": {tally.RatioMax(), 9}, "ratio min": {tally.RatioMin(), 0.5}, "drift": {tally.Drift(), math.Log(9)},
		"tokens": {float64(tally.Tokens), 7},
		"clipped above": {
			tally.ClipFractionPositive(), 2.0 / 7,
		}, "clipped below": {tally.ClipFractionNegative(), 1.0 / 7},
	} {
		if !near(pair[0], pair[1], 1e-12) {
			t.Errorf("%s = %g, want %g", name, pair[0], pair[1])
		}
	}
}

func TestBehaviourCloning(t *testing.T) {
	rows := []Row[float64]{
		{LogProbs: []float64{0, -1, -2}, Mask: []int32{0, 1, 1}, Count: 1},
		{LogProbs: []float64{0, -6}, Mask: []int32{0, 1}, Count: 1},
	}
	masks, _ := shapes(rows)
	d, err := Aggregation{Mode: TokenMean}.Denominator(masks, nil)
	if err != nil {
		t.Fatal(err)
	}
	got, err := Evaluate(BehaviourCloning{}, rows, d)
	if err != nil {
		t.Fatal(err)
	}
	if got.Loss != 3 || got.Tally.Tokens != 3 || got.Tally.Rows != 2 {
		t.Errorf("got %+v, want loss 3 over 3 tokens of 2 rows", got)
	}
	if c := got.Cotangents; c[0][0] != 0 || !near(c[0][1], -1.0/3, 1e-15) || !near(c[1][1], -1.0/3, 1e-15) {
		t.Errorf("cotangents %v, want −1/3 under the mask", c)
	}
}

func TestEvaluateRefusesBadRows(t *testing.T) {
	good := func() Row[float64] {
		return Row[float64]{
			LogProbs: []float64{-1}, Old: []float64{-1}, Advantages: []float64{1}, Mask: []int32{1}, Count: 1,
		}
	}
	for name, spoil := range map[string]func(*Row[float64]){
		"mask":           func(r *Row[float64]) { r.Mask[0] = 2 },
		"new":            func(r *Row[float64]) { r.LogProbs[0] = math.NaN() },
		"old positive":   func(r *Row[float64]) { r.Old[0] = 0.01 },
		"old missing":    func(r *Row[float64]) { r.Old = nil },
		"advantage":      func(r *Row[float64]) { r.Advantages[0] = math.Inf(-1) },
		"advantage size": func(r *Row[float64]) { r.Advantages = []float64{1, 1} },
		"new size":       func(r *Row[float64]) { r.LogProbs = nil },
		"count":          func(r *Row[float64]) { r.Count = 0 },
	} {
		row := good()
		spoil(&row)
		if _, err := Evaluate(
			PPOClip{Low: 0.2, High: 0.2}, []Row[float64]{row}, Denominator{},
		); !errors.Is(err, ErrBadRow) {
			t.Errorf("%s: got %v, want ErrBadRow", name, err)
		}
	}
}

func TestValidate(t *testing.T) {
	for _, p := range []PPOClip{{Low: -0.1}, {Low: 1.1}, {High: -1}, {High: math.Inf(1)}, {Dual: 1}, {Dual: -2},
		{Dual: math.NaN()}} {
		if p.Validate() == nil {
			t.Errorf("%+v was accepted", p)
		}
	}
	for _, a := range []Aggregation{{}, {Mode: "mean"}, {Mode: SeqMeanTokenSumNorm}, {Mode: NormLegacy, Horizon: -1}} {
		if _, err := a.Denominator(nil, nil); err == nil {
			t.Errorf("%+v was accepted", a)
		}
	}
	if _, _, err := Estimator("k4").Estimate(0, 0); err == nil {
		t.Error("estimator k4 was accepted")
	}
	if _, err := (Aggregation{Mode: TokenMean}).Denominator(nil, []int32{1}); err == nil {
		t.Error("a count without a mask was accepted")
	}
	if _, err := (Denominator{}).Aggregate([][]float64{{1, 2}}, [][]int32{{1}}, nil); err == nil {
		t.Error("ragged values were accepted")
	}
}
