// Package losstest makes random batches and a list of every loss with usual settings, for the tests
// and benchmarks of package loss and of what uses it.
package losstest

import (
	"maps"
	"math"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Case is one loss as Names spells it.
type Case struct {
	Name      string
	Objective loss.Objective
	Value     *loss.ValueClip // the critic's loss, which reads Batch.Values
	Settings  choice.Params   // parameters of the policy loss under their names in recipes
}

// Params are the case's settings as the formulas of testdata/parity.py read them.
func (c Case) Params() map[string]any {
	out := map[string]any{}
	maps.Copy(out, c.Settings)
	if c.Value != nil {
		out["policy"], out["clip"] = c.Value.Name(), c.Value.Clip
	}
	if c.Objective.Policy != nil {
		out["policy"] = c.Objective.Policy.Name()
	}
	if k := c.Objective.KL; k != nil {
		out["estimator"], out["c_kl"] = string(k.Estimator), k.Coefficient
	}
	if h := c.Objective.Entropy; h != nil {
		out["c_h"] = h.Coefficient
	}
	return out
}

// Cases lists every loss with the aggregation token-mean: the declared losses with their examples, then the losses and
// terms that a training step composes itself.
func Cases() []Case {
	mean := loss.Aggregation{Mode: loss.TokenMean}
	var out []Case
	for _, d := range loss.Declarations() {
		out = append(out, Declared(d))
	}
	clip := loss.PPOClip{Low: 0.2, High: 0.28}
	imitation := choice.Params{"clip_low": clip.Low, "clip_high": clip.High, "gamma": 0.5}
	out = append(out, policyCase(loss.SelfImitation{Policy: clip, Gamma: 0.5}, imitation),
		policyCase(loss.BehaviourCloning{}, nil), Case{Name: loss.ValueClip{}.Name(),
			Value: &loss.ValueClip{Clip: 0.5}, Objective: loss.Objective{Aggregation: mean}})
	for _, e := range []loss.Estimator{loss.K1, loss.AbsKL, loss.K2, loss.K3} {
		k := loss.KL{Estimator: e, Coefficient: 0.01}
		out = append(out, Case{Name: k.Name(), Objective: loss.Objective{KL: &k, Aggregation: mean}})
	}
	h := loss.Entropy{Coefficient: 0.001}
	return append(out, Case{Name: h.Name(), Objective: loss.Objective{Entropy: &h, Aggregation: mean}})
}

// Declared is the case of a declared loss, with its example. It panics on a declaration without a loss.
func Declared(d loss.Declaration) Case {
	s, settings, err := d.ExampleLoss()
	if err != nil {
		panic(err)
	}
	c := policyCase(s, settings)
	c.Name = d.Name
	return c
}

func policyCase(s loss.Surrogate, settings choice.Params) Case {
	mean := loss.Aggregation{Mode: loss.TokenMean}
	return Case{Name: s.Name(), Objective: loss.Objective{Policy: s, Aggregation: mean}, Settings: settings}
}

// Batch is rows with every optional field, and the critic's.
type Batch[T loss.Float] struct {
	Rows   []loss.Row[T]
	Values []loss.ValueRow[T]
}

// Spread says how far a batch's policies lie apart.
type Spread struct {
	Drift  float64 // standard deviation of the log-ratio
	Tokens bool    // an advantage per token instead of per row
}

// New draws rows of the given length as multi-turn trajectories have them: runs of the policy's
// tokens between tool outputs, then padding.
func New[T loss.Float](rng *rand.Rand, rows, length int, s Spread) Batch[T] {
	var b Batch[T]
	for i := range rows {
		r := loss.Row[T]{Mask: mask(rng, length), Count: 1, Group: string(rune('a' + i/8)), Sample: int32(i % 8)}
		advantage := rng.NormFloat64()
		if i == 0 {
			advantage = -math.Abs(advantage)
		}
		for range length {
			if s.Tokens {
				advantage = rng.NormFloat64()
			}
			old := -rng.ExpFloat64()
			r.Old = append(r.Old, T(old))
			r.LogProbs = append(r.LogProbs, T(old+s.Drift*rng.NormFloat64()))
			r.Rollout = append(r.Rollout, T(old+s.Drift*rng.NormFloat64()))
			r.Ref = append(r.Ref, T(old+s.Drift*rng.NormFloat64()))
			r.Entropies = append(r.Entropies, T(rng.ExpFloat64()))
			r.Advantages = append(r.Advantages, T(advantage))
		}
		b.Rows = append(b.Rows, r)
		b.Values = append(b.Values, critic[T](rng, r.Mask))
	}
	return b
}

func critic[T loss.Float](rng *rand.Rand, mask []int32) loss.ValueRow[T] {
	v := loss.ValueRow[T]{Mask: mask, Count: 1}
	for range mask {
		old := rng.NormFloat64()
		v.Old = append(v.Old, T(old))
		v.Values = append(v.Values, T(old+rng.NormFloat64()/2))
		v.Returns = append(v.Returns, T(old+rng.NormFloat64()))
	}
	return v
}

// mask alternates runs of about a sixth and a sixteenth of the length, up to an end drawn from the
// second half.
func mask(rng *rand.Rand, length int) []int32 {
	m := make([]int32, length)
	end := length/2 + rng.IntN(length-length/2) + 1
	run := func(mean int) int { return 1 + rng.IntN(2*max(mean, 1)) }
	for t := 0; t < end; {
		for n := run(length / 6); n > 0 && t < end; n-- {
			m[t], t = 1, t+1
		}
		t += run(length / 16)
	}
	return m
}

// Once prepares a case over a batch as its whole mini-batch, evaluates it, and returns that
// evaluation to be repeated with the number of tokens under the mask.
func Once[T loss.Float](c Case, b Batch[T], e *loss.Evaluator[T]) (once func() error, tokens int64, err error) {
	rows, plan, err := Planned(c, b)
	if err != nil {
		return nil, 0, err
	}
	once = func() error {
		_, err := Evaluate(c, e, rows, b.Values, plan)
		return err
	}
	for _, r := range rows {
		tokens += int64(r.Tokens())
	}
	return once, tokens, once()
}

// Planned returns a case's rows, with marks where it needs them and only the fields that it reads,
// and the plan over all of them.
func Planned[T loss.Float](c Case, b Batch[T]) ([]loss.Row[T], loss.Plan, error) {
	rows := make([]loss.Row[T], len(b.Rows))
	masks, counts := make([][]int32, len(b.Rows)), make([]int32, len(b.Rows))
	for i, r := range b.Rows {
		if c.Objective.Entropy == nil {
			r.Entropies = nil
		}
		rows[i], masks[i], counts[i] = r, r.Mask, r.Count
	}
	if c.Value != nil {
		d, err := c.Objective.Aggregation.Denominator(masks, counts)
		return rows, loss.Plan{Policy: d, Penalty: d}, err
	}
	plan, err := loss.Prepare(c.Objective, rows, rand.New(rand.NewPCG(7, 7)))
	for i := range plan.Marks {
		rows[i].Marks = plan.Marks[i]
	}
	return rows, plan, err
}

// Evaluate evaluates a case.
func Evaluate[T loss.Float](
	c Case, e *loss.Evaluator[T], rows []loss.Row[T], values []loss.ValueRow[T], plan loss.Plan,
) (loss.Result[T], error) {
	if c.Value != nil {
		return e.EvaluateValues(*c.Value, values, plan.Policy)
	}
	return e.Evaluate(c.Objective, rows, plan)
}
