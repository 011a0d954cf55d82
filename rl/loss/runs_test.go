package loss_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// runObjectives are the objectives that are evaluated over runs, each with −logp and without.
func runObjectives() (out []loss.Objective) {
	entropy := &loss.Entropy{Coefficient: 0.2}
	for _, policy := range []loss.Surrogate{nil, loss.BehaviourCloning{}} {
		for _, e := range []loss.Estimator{loss.K1, loss.AbsKL, loss.K2} {
			o := loss.Objective{Policy: policy, KL: &loss.KL{Estimator: e, Coefficient: 0.3}}
			o.Aggregation = loss.Aggregation{Mode: loss.SeqMeanTokenMean}
			out = append(out, o)
			o.Entropy = entropy
			out = append(out, o)
		}
	}
	return out
}

// Objectives over runs of every length about a register's, with ties of logp and ref, against their formulas.
func TestRunsAreTheirFormulas(t *testing.T) {
	t.Run("float32", func(t *testing.T) { testRuns[float32](t, 1e-7) })
	t.Run("float64", func(t *testing.T) { testRuns[float64](t, 1e-14) })
}

func testRuns[T loss.Float](t *testing.T, tolerance float64) {
	rng := rand.New(rand.NewPCG(5, 9))
	for _, o := range runObjectives() {
		for range 40 {
			b := losstest.New[T](rng, 4, 1+rng.IntN(150), losstest.Spread{Drift: 0.5})
			for i := range b.Rows {
				r := &b.Rows[i]
				r.Count = int32(1 + rng.IntN(3))
				k := rng.IntN(len(r.Ref))
				r.Ref[k] = r.LogProbs[k]
			}
			plan, err := loss.Prepare(o, b.Rows, nil)
			require.NoError(t, err)
			got, err := new(loss.Evaluator[T]).Evaluate(o, b.Rows, plan)
			require.NoError(t, err)
			want := 0.0
			for i, r := range b.Rows {
				w := plan.Policy.Weight(r.Tokens()) * float64(r.Count)
				for k, m := range r.Mask {
					value, gradient, slope := runToken(t, o, r, k)
					want += float64(m) * w * value
					require.InDelta(
						t, float64(m)*w*gradient, float64(got.Cotangents[i][k]), tolerance*w*(1+math.Abs(gradient)),
					)
					if o.Entropy != nil {
						require.InDelta(t, float64(m)*w*slope, float64(got.EntropyCotangents[i][k]), tolerance*w)
					}
				}
			}
			require.InDelta(t, want, got.Loss, 1e-12*(1+math.Abs(want)))
		}
	}
}

// runToken is one token's loss with its derivatives in logp and in the entropy.
func runToken[T loss.Float](t *testing.T, o loss.Objective, r loss.Row[T], k int) (value, gradient, slope float64) {
	t.Helper()
	value, gradient, err := o.KL.Estimator.Estimate(float64(r.LogProbs[k]), float64(r.Ref[k]))
	require.NoError(t, err)
	value, gradient = o.KL.Coefficient*value, o.KL.Coefficient*gradient
	if o.Policy != nil {
		value, gradient = value-float64(r.LogProbs[k]), gradient-1
	}
	if o.Entropy != nil {
		slope = -o.Entropy.Coefficient
		value += slope * float64(r.Entropies[k])
	}
	return value, gradient, slope
}

// What makes a row unusable is found over runs too, at any position of a run.
func TestRunsRefuseBadRows(t *testing.T) {
	spoils := map[string]func(r *loss.Row[float32], k int){
		"mask of token":                func(r *loss.Row[float32], k int) { r.Mask[k] = 2 },
		"log-probability of token":     func(r *loss.Row[float32], k int) { r.LogProbs[k] = float32(math.NaN()) },
		"reference log-probability of": func(r *loss.Row[float32], k int) { r.Ref[k] = float32(math.Inf(-1)) },
	}
	for _, o := range runObjectives() {
		for want, spoil := range spoils {
			for _, k := range []int{0, 7, 8, 39, 40} {
				b := losstest.New[float32](rand.New(rand.NewPCG(1, 1)), 1, 41, losstest.Spread{Drift: 0.5})
				r := &b.Rows[0]
				for t := range r.Mask {
					r.Mask[t] = 1
				}
				plan, err := loss.Prepare(o, b.Rows, nil)
				require.NoError(t, err)
				spoil(r, k)
				_, err = new(loss.Evaluator[float32]).Evaluate(o, b.Rows, plan)
				require.ErrorIs(t, err, loss.ErrBadRow)
				require.ErrorContains(t, err, want)
			}
		}
	}
}
