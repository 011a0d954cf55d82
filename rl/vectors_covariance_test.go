package rl

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ropewalk/ropewalk/internal/testing/vectors"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// covarianceInput is one case of Clip-Cov or, where a coefficient is given, KL-Cov.
type covarianceInput struct {
	settings
	Old, Logp [][]float64
	Adv       perToken
	Mask      [][]int32
	Lower     float64  `json:"cov_lb"`
	Upper     float64  `json:"cov_ub"`
	Ratio     float64  `json:"ratio"`
	KLCoef    *float64 `json:"kl_coef"`
	PPOKLCoef *float64 `json:"ppo_kl_coef"`
	Coef      *float64 `json:"coef"`
}

func (in covarianceInput) coefficient() *float64 {
	for _, c := range []*float64{in.KLCoef, in.PPOKLCoef, in.Coef} {
		if c != nil {
			return c
		}
	}
	return nil
}

func (in covarianceInput) rows(t *testing.T) []loss.Row[float64] {
	t.Helper()
	if in.Mask == nil {
		for _, r := range in.Logp {
			in.Mask = append(in.Mask, slices.Repeat([]int32{1}, len(r)))
		}
	}
	if in.Old == nil {
		in.Old = in.Logp
	}
	return lossRows(in.Old, in.Logp, in.Adv.table(t, in.Mask), in.Mask)
}

func testCovariance(t *testing.T, c vectors.Case) {
	var in covarianceInput
	var raw json.RawMessage
	c.Decode(t, &in, &raw)
	rows := in.rows(t)
	var literal [][]float64
	if json.Unmarshal(raw, &literal) == nil {
		vectors.Equal(t, "groupwise covariance", loss.Covariances(rows, loss.ScopeGroup), literal)
		return
	}
	var want map[string]json.RawMessage
	decode(t, raw, &want)
	rule := loss.CovarianceRule{Ratio: in.Ratio, Lower: in.Lower, Upper: in.Upper}
	o := loss.Objective{
		Policy:      loss.ClipCov{Low: in.Low, High: in.High, Rule: rule},
		Aggregation: loss.Aggregation{Mode: loss.TokenMean},
	}
	if k := in.coefficient(); k != nil {
		o.Policy = loss.KLCov{Coefficient: *k, Rule: rule}
	}
	if err := o.Validate(); err != nil {
		t.Fatal(err)
	}
	outcomes := drawAll(t, o, rows)
	for name, value := range want {
		switch name {
		case "cov":
			var w [][]float64
			decode(t, value, &w)
			vectors.Equal(t, name, loss.Covariances(rows, loss.ScopeMinibatch), w)
		case "candidates":
			checkCandidates(t, in, rows, value)
		case "selected":
			var w [][2]int
			decode(t, value, &w)
			if got := places(outcomes[0].marks); len(outcomes) != 1 || !slices.Equal(got, w) {
				t.Errorf("selected %v in %d ways, want %v", got, len(outcomes), w)
			}
		case "budget", "k":
			tokens := 0
			for _, r := range rows {
				tokens += r.Tokens()
			}
			checkInt(t, name, rule.Budget(tokens), value)
		case "n_selected":
			checkInt(t, name, len(places(outcomes[0].marks)), value)
		case "loss_token_mean", "loss":
			var w float64
			decode(t, value, &w)
			vectors.Equal(t, name, []float64{outcomes[0].result.Loss}, []float64{w})
		case "grad_logp":
			var w [][]float64
			decode(t, value, &w)
			vectors.Equal(t, name, outcomes[0].result.Cotangents, w)
		case "loss_if_selected":
			checkAlternatives(t, outcomes, value)
		default:
			t.Errorf("output %s is not compared", name)
		}
	}
}

func checkInt(t *testing.T, name string, got int, raw json.RawMessage) {
	t.Helper()
	var want int
	decode(t, raw, &want)
	if got != want {
		t.Errorf("%s is %d, want %d", name, got, want)
	}
}

// outcome is one way in which a draw may end.
type outcome struct {
	marks  [][]int32
	result loss.Result[float64]
}

// drawAll evaluates every outcome that 64 seeds give.
func drawAll(t *testing.T, o loss.Objective, rows []loss.Row[float64]) []outcome {
	t.Helper()
	var out []outcome
	for seed := range uint64(64) {
		plan, err := loss.Prepare(o, rows, rand.New(rand.NewPCG(seed, 1)))
		if err != nil {
			t.Fatal(err)
		}
		if slices.ContainsFunc(out, func(x outcome) bool { return slices.Equal(places(x.marks), places(plan.Marks)) }) {
			continue
		}
		marked := slices.Clone(rows)
		for i := range marked {
			marked[i].Marks = plan.Marks[i]
		}
		var e loss.Evaluator[float64]
		got, err := e.Evaluate(o, marked, plan)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, outcome{plan.Marks, got})
	}
	return out
}

// places lists the marked tokens.
func places(marks [][]int32) (out [][2]int) {
	for i, row := range marks {
		for k, m := range row {
			if m != 0 {
				out = append(out, [2]int{i, k})
			}
		}
	}
	return out
}

// checkCandidates draws with a budget that takes every candidate.
func checkCandidates(t *testing.T, in covarianceInput, rows []loss.Row[float64], raw json.RawMessage) {
	t.Helper()
	var want [][2]int
	decode(t, raw, &want)
	all := loss.Objective{Aggregation: loss.Aggregation{Mode: loss.TokenMean}, Policy: loss.ClipCov{
		Low: in.Low, High: in.High, Rule: loss.CovarianceRule{Ratio: 1, Lower: in.Lower, Upper: in.Upper},
	}}
	if got := places(drawAll(t, all, rows)[0].marks); !slices.Equal(got, want) {
		t.Errorf("candidates %v, want %v", got, want)
	}
}

// checkAlternatives asks that each outcome's loss is among those listed and each of those came up.
func checkAlternatives(t *testing.T, outcomes []outcome, raw json.RawMessage) {
	t.Helper()
	var want []float64
	decode(t, raw, &want)
	seen := make([]bool, len(want))
	for _, o := range outcomes {
		k := slices.IndexFunc(want, func(w float64) bool { return vectors.Near(o.result.Loss, w) })
		if k < 0 {
			t.Errorf("selection %v gives loss %g, want one of %v", places(o.marks), o.result.Loss, want)
			continue
		}
		seen[k] = true
	}
	for k, ok := range seen {
		if !ok && !slices.ContainsFunc(want[:k], func(w float64) bool { return vectors.Near(w, want[k]) }) {
			t.Errorf("no draw of 64 gives loss %g", want[k])
		}
	}
}
