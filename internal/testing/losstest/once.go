package losstest

import (
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/loss"
)

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
