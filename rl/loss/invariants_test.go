package loss_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// everyCase is every loss, and compositions of all the parts.
func everyCase() []losstest.Case {
	out := losstest.Cases()
	k, h := loss.KL{Estimator: loss.K3, Coefficient: 0.1}, loss.Entropy{Coefficient: 0.01}
	parts := loss.Objective{
		Policy: loss.CISPO{Low: 0.3, High: 0.2, Mask: true}, Aggregation: loss.Aggregation{Mode: loss.TokenMean},
		TIS: &loss.TIS{Cap: 2}, SequenceMask: &loss.SequenceMask{Delta: 0.1}, KL: &k, Entropy: &h,
	}
	shrinking := parts
	shrinking.Policy = loss.GSPO{Low: 0.1, High: 0.1}
	shrinking.SequenceMask = &loss.SequenceMask{Delta: 0.1, Shrink: true}
	return append(
		out, losstest.Case{Name: "everything", Objective: parts},
		losstest.Case{Name: "everything shrinking", Objective: shrinking},
	)
}

func eachCase(t *testing.T, f func(t *testing.T, c losstest.Case, rng *rand.Rand)) {
	for _, c := range everyCase() {
		t.Run(c.Name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(21, 4))
			for range 25 {
				mode := loss.Modes()[rng.IntN(len(loss.Modes()))]
				c.Objective.Aggregation = loss.Aggregation{Mode: mode, Horizon: 13}
				f(t, c, rng)
			}
		})
	}
}

// sameBits compares all of two results; dead rows and −0 included.
var sameBits = cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmpopts.EquateEmpty()}

func permuted(b losstest.Batch[float64], order []int) (out losstest.Batch[float64]) {
	for _, i := range order {
		out.Rows, out.Values = append(out.Rows, b.Rows[i]), append(out.Values, b.Values[i])
	}
	return out
}

func TestOrderOfRowsChangesNoBit(t *testing.T) {
	eachCase(t, func(t *testing.T, c losstest.Case, rng *rand.Rand) {
		b := random(rng, 9)
		order := rng.Perm(9)
		got, want := evaluateCase(t, c, permuted(b, order)), evaluateCase(t, c, b)
		if d := cmp.Diff(want.Tally, got.Tally, sameBits); got.Loss != want.Loss || d != "" {
			t.Fatalf("loss %v and %v, statistics %s", want.Loss, got.Loss, d)
		}
		for k, i := range order {
			if !sameRow(got.Cotangents, k, want.Cotangents, i) || !sameRow(
				got.EntropyCotangents, k, want.EntropyCotangents, i,
			) {
				t.Fatalf("the cotangents of row %d depend on its place", i)
			}
		}
	})
}

func sameRow(a [][]float64, i int, b [][]float64, k int) bool {
	return a == nil && b == nil || cmp.Equal(a[i], b[k])
}

func TestWorkersChangeNoBit(t *testing.T) {
	eachCase(t, func(t *testing.T, c losstest.Case, rng *rand.Rand) {
		b := random(rng, 9)
		rows, plan, err := losstest.Planned(c, b)
		if err != nil {
			t.Fatal(err)
		}
		want := evaluateCase(t, c, b)
		got, err := losstest.Evaluate(c, &loss.Evaluator[float64]{Workers: 1 + rng.IntN(12)}, rows, b.Values, plan)
		if err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Fatal(d)
		}
	})
}

func TestMaskedTokensAndPaddingDoNotMatter(t *testing.T) {
	junk := []float64{math.NaN(), math.Inf(1), 7, -1e300}
	eachCase(t, func(t *testing.T, c losstest.Case, rng *rand.Rand) {
		b := random(rng, 5)
		want := evaluateCase(t, c, b)
		padded := losstest.Batch[float64]{}
		padding := rng.IntN(5)
		for i, r := range b.Rows {
			v := b.Values[i]
			spoil := func(x []float64) []float64 {
				out := append(append([]float64{}, x...), make([]float64, padding)...)
				for k := range out {
					if k >= len(r.Mask) || r.Mask[k] == 0 {
						out[k] = junk[rng.IntN(len(junk))]
					}
				}
				return out
			}
			r.LogProbs, r.Old, r.Advantages = spoil(r.LogProbs), spoil(r.Old), spoil(r.Advantages)
			r.Rollout, r.Ref, r.Entropies = spoil(r.Rollout), spoil(r.Ref), spoil(r.Entropies)
			v.Values, v.Old, v.Returns = spoil(v.Values), spoil(v.Old), spoil(v.Returns)
			r.Mask = append(append([]int32{}, r.Mask...), make([]int32, padding)...)
			v.Mask = r.Mask
			padded.Rows, padded.Values = append(padded.Rows, r), append(padded.Values, v)
		}
		got := evaluateCase(t, c, padded)
		for i := range got.Cotangents {
			got.Cotangents[i] = got.Cotangents[i][:len(want.Cotangents[i])]
		}
		for i := range got.EntropyCotangents {
			got.EntropyCotangents[i] = got.EntropyCotangents[i][:len(want.EntropyCotangents[i])]
		}
		if d := cmp.Diff(want, got, sameBits); d != "" {
			t.Fatal(d)
		}
	})
}

func TestAnySplitAddsUp(t *testing.T) {
	eachCase(t, func(t *testing.T, c losstest.Case, rng *rand.Rand) {
		b := random(rng, 9)
		rows, plan, err := losstest.Planned(c, b)
		if err != nil {
			t.Fatal(err)
		}
		whole := evaluateCase(t, c, b)
		sum, tally := 0.0, loss.Tally{}
		e := new(loss.Evaluator[float64])
		for from := 0; from < len(rows); {
			to := min(len(rows), from+1+rng.IntN(3))
			part, err := losstest.Evaluate(c, e, rows[from:to], b.Values[from:to], plan)
			if err != nil {
				t.Fatal(err)
			}
			sum += part.Loss
			tally.Merge(part.Tally)
			for i := from; i < to; i++ {
				if !sameRow(part.Cotangents, i-from, whole.Cotangents, i) {
					t.Fatalf("the cotangents of row %d depend on the cut", i)
				}
			}
			from = to
		}
		if !closeTo(sum, whole.Loss, 1e-12) {
			t.Fatalf("parts add up to %v, the whole is %v", sum, whole.Loss)
		}
		if d := cmp.Diff(whole.Tally, tally, sameBits, cmpopts.EquateApprox(1e-12, 1e-12)); d != "" {
			t.Fatal(d)
		}
	})
}

func TestFloat32FollowsFloat64(t *testing.T) {
	eachCase(t, func(t *testing.T, c losstest.Case, rng *rand.Rand) {
		seed := rng.Uint64()
		narrow := losstest.New[float32](rand.New(rand.NewPCG(seed, 1)), 6, 700, losstest.Spread{Drift: 0.3})
		var wide losstest.Batch[float64]
		for i, r := range narrow.Rows {
			v := narrow.Values[i]
			wide.Rows = append(wide.Rows, loss.Row[float64]{
				LogProbs: widen(r.LogProbs), Old: widen(r.Old), Advantages: widen(r.Advantages), Mask: r.Mask,
				Count: r.Count, Rollout: widen(r.Rollout), Ref: widen(r.Ref), Entropies: widen(r.Entropies),
				Group: r.Group, Sample: r.Sample,
			})
			wide.Values = append(
				wide.Values,
				loss.ValueRow[float64]{
					Values: widen(v.Values), Old: widen(v.Old), Returns: widen(v.Returns), Mask: v.Mask, Count: v.Count,
				},
			)
		}
		rows, plan, err := losstest.Planned(c, narrow)
		if err != nil {
			t.Fatal(err)
		}
		got, err := losstest.Evaluate(c, new(loss.Evaluator[float32]), rows, narrow.Values, plan)
		if err != nil {
			t.Fatal(err)
		}
		want := evaluateCase(t, c, wide)
		if !closeTo(got.Loss, want.Loss, 1e-12) {
			t.Fatalf("loss %v of float32, %v of the same numbers in float64", got.Loss, want.Loss)
		}
		for i := range want.Cotangents {
			for k, w := range want.Cotangents[i] {
				if g := float64(got.Cotangents[i][k]); math.Abs(g-w) > 1e-7*math.Abs(w) {
					t.Fatalf("row %d token %d: cotangent %g of float32, %g of float64", i, k, g, w)
				}
			}
		}
	})
}

func widen(x []float32) []float64 {
	out := make([]float64, len(x))
	for k, v := range x {
		out[k] = float64(v)
	}
	return out
}

func TestDegenerateBatches(t *testing.T) {
	for _, c := range everyCase() {
		for name, b := range map[string]losstest.Batch[float64]{
			"no row": {}, "all masked": allMasked(3), "no token": {
				Rows: []loss.Row[float64]{{Count: 1}}, Values: []loss.ValueRow[float64]{{Count: 1}},
			},
		} {
			got := evaluateCase(t, c, b)
			if got.Loss != 0 || got.Tally.Rows != 0 || got.Tally.ClipFraction() != 0 || got.Tally.KL() != 0 ||
				got.Tally.RatioMax() != 0 {
				t.Errorf("%s, %s: got %+v, want nothing", c.Name, name, got)
			}
			for _, row := range got.Cotangents {
				for _, v := range row {
					if v != 0 {
						t.Errorf("%s, %s: cotangent %g", c.Name, name, v)
					}
				}
			}
		}
	}
}

func allMasked(n int) losstest.Batch[float64] {
	b := random(rand.New(rand.NewPCG(1, 1)), n)
	for i := range b.Rows {
		clear(b.Rows[i].Mask)
		for k := range b.Rows[i].Mask {
			b.Rows[i].LogProbs[k], b.Values[i].Values[k] = math.NaN(), math.NaN()
		}
	}
	return b
}

// A policy that has not moved: every ratio is 1, and the loss is that of REINFORCE.
func TestEqualPolicies(t *testing.T) {
	for _, c := range losstest.Cases() {
		if c.Objective.Policy == nil || c.Objective.Policy.Inputs()&(loss.Ratios|loss.Sequence) == 0 ||
			c.Name == "clip_cov" || c.Name == "self_imitation" {
			continue
		}
		b := losstest.New[float64](rand.New(rand.NewPCG(3, 3)), 4, 30, losstest.Spread{})
		c.Objective.Aggregation = loss.Aggregation{Mode: loss.TokenSum}
		got := evaluateCase(t, c, b)
		for i, r := range b.Rows {
			for k, m := range r.Mask {
				if want := -float64(m) * r.Advantages[k]; !closeTo(got.Cotangents[i][k], want, 1e-12) {
					t.Fatalf("%s: cotangent %g, want −A = %g", c.Name, got.Cotangents[i][k], want)
				}
			}
		}
		if got.Tally.ClipFraction() != 0 || got.Tally.RatioMax() != 1 || got.Tally.Drift() != 0 {
			t.Errorf("%s: statistics %+v of equal policies", c.Name, got.Tally)
		}
	}
}

// Beyond the clamp the gradient through r is gone; CISPO's does not run through r.
func TestClampedRatios(t *testing.T) {
	for _, c := range losstest.Cases() {
		p := c.Objective.Policy
		if p == nil || p.Inputs()&loss.Ratios == 0 {
			continue
		}
		for _, l := range []float64{25, -25, 800} {
			for _, a := range []float64{1, -1, 0} {
				b := losstest.Batch[float64]{Rows: []loss.Row[float64]{{
					LogProbs: []float64{l - 900}, Old: []float64{-900}, Advantages: []float64{a}, Mask: []int32{1},
					Count: 1,
				}}}
				got := evaluateCase(t, c, b)
				coef := got.Cotangents[0][0]
				if c.Name == "cispo" && l > 0 && a != 0 {
					if coef != -1.2*a {
						t.Errorf("cispo at %g: coefficient %g, want %g", l, coef, -1.2*a)
					}
				} else if c.Name != "cispo" && coef != 0 || math.IsNaN(got.Loss) || math.IsInf(got.Loss, 0) {
					t.Errorf("%s at log-ratio %g, advantage %g: loss %g, coefficient %g", c.Name, l, a, got.Loss, coef)
				}
			}
		}
	}
}

func TestBadRowsAreNamed(t *testing.T) {
	for _, c := range everyCase() {
		if c.Name != "everything" {
			continue
		}
		for want, spoil := range map[string]func(r *loss.Row[float64]){
			"mask of token 1":                       func(r *loss.Row[float64]) { r.Mask[1] = 3 },
			" log-probability of token 1":           func(r *loss.Row[float64]) { r.LogProbs[1] = math.NaN() },
			"old log-probability of token 1":        func(r *loss.Row[float64]) { r.Old[1] = 0.5 },
			"advantage of token 1":                  func(r *loss.Row[float64]) { r.Advantages[1] = math.Inf(1) },
			"rollout log-probability of token 1":    func(r *loss.Row[float64]) { r.Rollout[1] = math.NaN() },
			"reference log-probability of token 1":  func(r *loss.Row[float64]) { r.Ref[1] = math.Inf(-1) },
			"entropy of token 1":                    func(r *loss.Row[float64]) { r.Entropies[1] = math.NaN() },
			"1 values of reference log-probability": func(r *loss.Row[float64]) { r.Ref = r.Ref[:1] },
			"0 values of rollout log-probability":   func(r *loss.Row[float64]) { r.Rollout = nil },
			"count must be ≥ 1":                     func(r *loss.Row[float64]) { r.Count = 0 },
		} {
			b := losstest.New[float64](rand.New(rand.NewPCG(3, 3)), 3, 2, losstest.Spread{})
			for i := range b.Rows {
				b.Rows[i].Mask = []int32{1, 1}
			}
			rows, plan, err := losstest.Planned(c, b)
			if err != nil {
				t.Fatal(err)
			}
			for i := range rows {
				rows[i].Entropies = append([]float64{}, rows[i].Entropies...)
			}
			spoil(&rows[2])
			_, err = losstest.Evaluate(c, new(loss.Evaluator[float64]), rows, nil, plan)
			if !errors.Is(err, loss.ErrBadRow) || !strings.Contains(err.Error(), want) ||
				!strings.Contains(err.Error(), "row 2") {
				t.Errorf("got %v, want row 2 and %q", err, want)
			}
		}
	}
}

// The first call makes the buffers; the second uses them.
func TestEvaluatorDoesNotAllocate(t *testing.T) {
	b := losstest.New[float32](rand.New(rand.NewPCG(3, 3)), 16, 600, losstest.Spread{Drift: 0.3})
	for _, c := range everyCase() {
		once, _, err := losstest.Once(c, b, new(loss.Evaluator[float32]))
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(5, func() {
			if err := once(); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %g allocations a call", c.Name, n)
		}
	}
}
