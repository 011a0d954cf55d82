package loss_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// slow is one token's loss as its paper writes it: x is the log-probability that varies, x0 the one
// at which stop-gradients hold their values.
type slow func(x, x0, old, a float64) float64

func clampTo(v, lo, hi float64) float64 { return math.Max(lo, math.Min(hi, v)) }

func slowPPO(low, high, dual float64) slow {
	return func(x, _, old, a float64) float64 {
		r := math.Exp(x - old)
		v := math.Max(-a*r, -a*clampTo(r, 1-low, 1+high))
		if dual > 0 && a < 0 {
			v = math.Min(v, -a*dual)
		}
		return v
	}
}

func slowGPPO(low, high, beta1, beta2 float64) slow {
	return func(x, x0, old, a float64) float64 {
		r, held := math.Exp(x-old), math.Exp(x0-old)
		switch {
		case a < 0 && held < 1-low:
			return -a * beta1 * (1 - low) * r / held
		case a > 0 && held > 1+high:
			return -a * beta2 * (1 + high) * r / held
		}
		return -a * r
	}
}

// slowLosses are the token losses of losstest.Cases that need no other token.
func slowLosses() map[string]slow {
	sigmoid := func(z float64) float64 { return 1 / (1 + math.Exp(-z)) }
	return map[string]slow{
		"ppo_clip":       slowPPO(0.2, 0.28, 3),
		"gppo":           slowGPPO(0.2, 0.28, 1, 1),
		"ce_gppo":        slowGPPO(0.2, 0.28, 0.75, 1),
		"self_imitation": func(x, x0, old, a float64) float64 { return 0.5 * slowPPO(0.2, 0.28, 0)(x, x0, old, a) },
		"cispo": func(x, x0, old, a float64) float64 {
			return -math.Min(math.Exp(x0-old), 1.2) * a * x
		},
		"sapo": func(x, _, old, a float64) float64 {
			tau := 1.05
			if a > 0 {
				tau = 1
			}
			return -4 / tau * sigmoid(tau*(math.Exp(x-old)-1)) * a
		},
		"aepo_clip": func(x, x0, old, a float64) float64 {
			r, held := math.Exp(x-old), math.Exp(x0-old)
			upper := 1.2 * r / held
			switch {
			case a > 0 && held > 1.2:
				return -a * upper
			case a < 0 && held < 0.8:
				return -a * 0.8
			}
			return -a * r
		},
		"gpg":               func(x, _, _, a float64) float64 { return -a * x },
		"behaviour_cloning": func(x, _, _, _ float64) float64 { return -x },
	}
}

// kinks are the ratios at which some loss has no derivative.
var kinks = []float64{0.8, 1.2, 1.28, 3}

func nearKink(r float64) bool {
	for _, k := range kinks {
		if math.Abs(r-k) < 1e-3 {
			return true
		}
	}
	return false
}

func region(a, r float64) string {
	side := "inside"
	switch {
	case r < 0.8:
		side = "below"
	case r > 3:
		side = "beyond the dual clip"
	case r > 1.28:
		side = "above"
	}
	return fmt.Sprintf("%v %s", a > 0, side)
}

func closeTo(got, want, tolerance float64) bool {
	return math.Abs(got-want) <= tolerance*(1+math.Abs(want))
}

// random draws a batch in which every region occurs, some rows are dead and counts differ.
func random(rng *rand.Rand, rows int) losstest.Batch[float64] {
	b := losstest.New[float64](rng, rows, 1+rng.IntN(12), losstest.Spread{Drift: 0.8, Tokens: rng.IntN(2) == 0})
	for i := range b.Rows {
		b.Rows[i].Count = int32(1 + rng.IntN(3))
		b.Values[i].Count = b.Rows[i].Count
		if rng.IntN(6) == 0 {
			clear(b.Rows[i].Mask)
		}
	}
	return b
}

func caseOf(t *testing.T, name string, mode loss.Mode) losstest.Case {
	t.Helper()
	for _, c := range losstest.Cases() {
		if c.Name == name {
			c.Objective.Aggregation = loss.Aggregation{Mode: mode, Horizon: 13}
			return c
		}
	}
	t.Fatalf("no loss %s", name)
	return losstest.Case{}
}

func evaluateCase(t *testing.T, c losstest.Case, b losstest.Batch[float64]) loss.Result[float64] {
	t.Helper()
	rows, plan, err := losstest.Planned(c, b)
	if err != nil {
		t.Fatal(err)
	}
	got, err := losstest.Evaluate(c, new(loss.Evaluator[float64]), rows, b.Values, plan)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// Token losses against the slow form: the value, and the cotangent against its central difference.
func TestTokenLossesAreTheirFormulas(t *testing.T) {
	for name, f := range slowLosses() {
		seen := map[string]int{}
		rng := rand.New(rand.NewPCG(3, 5))
		for range 150 {
			mode := loss.Modes()[rng.IntN(len(loss.Modes()))]
			b := random(rng, 1+rng.IntN(5))
			c := caseOf(t, name, mode)
			got := evaluateCase(t, c, b)
			_, plan, err := losstest.Planned(c, b)
			if err != nil {
				t.Fatal(err)
			}
			want := 0.0
			for i, r := range b.Rows {
				w := plan.Policy.Weight(r.Tokens())
				if name == "behaviour_cloning" {
					w *= float64(r.Count)
				}
				for k, m := range r.Mask {
					if m == 0 {
						if got.Cotangents[i][k] != 0 {
							t.Fatalf(
								"%s: token %d of row %d is off the mask and has cotangent %g", name, k, i,
								got.Cotangents[i][k],
							)
						}
						continue
					}
					x, old, a := r.LogProbs[k], r.Old[k], r.Advantages[k]
					want += w * f(x, x, old, a)
					ratio := math.Exp(x - old)
					seen[region(a, ratio)]++
					if nearKink(ratio) {
						continue
					}
					const h = 1e-6
					slope := w * (f(x+h, x, old, a) - f(x-h, x, old, a)) / (2 * h)
					if !closeTo(got.Cotangents[i][k], slope, 2e-8) {
						t.Fatalf(
							"%s %s: ratio %g, advantage %g: cotangent %g, difference %g", name, mode, ratio, a,
							got.Cotangents[i][k], slope,
						)
					}
				}
			}
			if !closeTo(got.Loss, want, 1e-12) {
				t.Fatalf("%s %s: loss %g, want %g", name, mode, got.Loss, want)
			}
		}
		if len(seen) != 8 {
			t.Errorf("%s: the batches visited only %v", name, seen)
		}
	}
}

// Losses that are honest functions of all log-probabilities, against differences of the whole loss.
func TestCotangentsAreDifferencesOfTheWholeLoss(t *testing.T) {
	for _, name := range []string{"gspo", "clip_cov", "kl_cov", "kl_k1", "kl_abs", "kl_k2", "kl_k3", "value_clip"} {
		rng := rand.New(rand.NewPCG(8, 5))
		for range 30 {
			b := random(rng, 1+rng.IntN(4))
			c := caseOf(t, name, loss.SeqMeanTokenMean)
			if name == "gspo" {
				c.Objective.Policy = loss.GSPO{Low: 0.2, High: 0.3}
			}
			rows, plan, err := losstest.Planned(c, b) // marks stay as they are
			if err != nil {
				t.Fatal(err)
			}
			at := func() loss.Result[float64] {
				got, err := losstest.Evaluate(c, new(loss.Evaluator[float64]), rows, b.Values, plan)
				if err != nil {
					t.Fatal(err)
				}
				return got
			}
			got := at()
			for i := range rows {
				for k := range rows[i].Mask {
					x := &rows[i].LogProbs[k]
					if c.Value != nil {
						x = &b.Values[i].Values[k]
					}
					const h = 1e-6
					before := *x
					*x = before + h
					up := at().Loss
					*x = before - h
					down := at().Loss
					*x = before
					middle := got.Loss
					if bend := math.Abs(up - 2*middle + down); bend > 1e-9 {
						continue // a kink lies within h: smooth losses bend by about h²
					}
					if slope := (up - down) / (2 * h); !closeTo(got.Cotangents[i][k], slope, 1e-7) {
						t.Fatalf(
							"%s row %d token %d: cotangent %g, difference %g", name, i, k, got.Cotangents[i][k], slope,
						)
					}
				}
			}
		}
	}
}

// GSPO-token's ratio holds s and lets each token move by itself.
func TestGSPOTokenIsItsFormula(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 2))
	for range 60 {
		b := random(rng, 3)
		c := caseOf(t, "gspo_token", loss.TokenSum)
		got := evaluateCase(t, c, b)
		want := 0.0
		for i, r := range b.Rows {
			mean := 0.0
			for k, m := range r.Mask {
				mean += float64(m) * (r.LogProbs[k] - r.Old[k]) / float64(max(r.Tokens(), 1))
			}
			s := math.Exp(mean)
			for k, m := range r.Mask {
				a := r.Advantages[k]
				v := math.Max(-a*s, -a*clampTo(s, 0.997, 1.004))
				coef := 0.0
				if v == -a*s {
					coef = -a * s
				}
				want += float64(m) * v
				if !closeTo(got.Cotangents[i][k], float64(m)*coef, 1e-12) {
					t.Fatalf("s %g, advantage %g: cotangent %g, want %g", s, a, got.Cotangents[i][k], coef)
				}
			}
		}
		if !closeTo(got.Loss, want, 1e-12) {
			t.Fatalf("loss %g, want %g", got.Loss, want)
		}
	}
}

// The entropy bonus has the same cotangent at each of a row's tokens.
func TestEntropyCotangents(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 4))
	b := random(rng, 6)
	c := caseOf(t, "entropy", loss.SeqMeanTokenMean)
	got := evaluateCase(t, c, b)
	live, want := 0.0, 0.0
	for _, r := range b.Rows {
		if r.Tokens() > 0 {
			live += float64(r.Count)
		}
	}
	for i, r := range b.Rows {
		for k, m := range r.Mask {
			w := float64(m) * float64(r.Count) / (live * float64(max(r.Tokens(), 1)))
			want += w * r.Entropies[k]
			if !closeTo(got.EntropyCotangents[i][k], -0.001*w, 1e-12) {
				t.Fatalf("row %d token %d: cotangent %g, want %g", i, k, got.EntropyCotangents[i][k], -0.001*w)
			}
		}
	}
	if !closeTo(got.Entropy, want, 1e-12) || !closeTo(got.Loss, -0.001*want, 1e-12) || got.Cotangents != nil {
		t.Errorf(
			"entropy %g and loss %g, want %g and %g; cotangents of log-probabilities %v", got.Entropy, got.Loss, want,
			-0.001*want, got.Cotangents,
		)
	}
}
