package batch

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// estimation computes the advantages of the tokens in a step's rows, as the method's slots say.
//
// The score of a trajectory's row is the trajectory's reward. In layout turns, each turn's row has the
// trajectory's reward as its score, minus invalid_penalty if the turn is invalid. For estimators that take rewards of
// tokens, the last token of a row that is in the loss carries the score (see tokenRewards).
type estimation struct {
	method     method.Method
	rows       []trainingRow
	beta       float64 // coefficient of the penalty in the reward, or of an adaptive penalty in the loss
	advantages [][]float64
	returns    [][]float64 // the critic's targets, if there is a critic
	stats      map[string]float64
}

// Estimate lays the sequences out in the rows of the recipe's layout and computes the advantages of their tokens. beta
// is the coefficient of a penalty in the reward, or of an adaptive penalty in the loss. The rows are in no particular
// order. The statistics are for the batch's manifest.
func Estimate(recipe *recipes.Recipe, kept []Sequence, beta float64) (rows []schema.BatchRow, stats map[string]float64,
	err error) {
	e := estimation{method: recipe.Method(), rows: layOut(kept, recipe.Layout, recipe.History()), beta: beta}
	if err := e.run(); err != nil {
		return nil, nil, err
	}
	return e.batch(), e.stats, nil
}

func (e *estimation) run() error {
	if e.method.Advantage.InvalidPenalty() > 0 {
		for _, r := range e.rows {
			if r.turn != nil && !r.turn.known {
				return refusal.Unusablef("advantage.invalid_penalty needs to know whether turn %d of trajectory %s "+
					"is valid, which the record does not say", r.name.Turn, r.TrajectoryID)
			}
		}
	}
	if err := e.estimate(); err != nil {
		return fmt.Errorf("advantage.name %s: %w", e.method.Advantage.Name, err)
	}
	if err := e.measure(); err != nil {
		return fmt.Errorf("loss.kl: %w", err)
	}
	e.countShared()
	return nil
}

// estimate runs the estimator that the method names, and multiplies by entropy if the method says so.
func (e *estimation) estimate() error {
	estimator, err := advantage.New(e.method.Advantage.Name, e.method.Advantage.Params)
	if err != nil {
		return err
	}
	b := e.input()
	out, err := estimator.Estimate(b)
	if err != nil {
		return err
	}
	if e.method.Advantage.SharesPrefixes() {
		return e.shared(b, out)
	}
	if out.Tokens != nil {
		e.advantages, e.returns = out.Tokens, out.Returns
		return nil
	}
	if aware := e.method.Advantage.EntropyAware; aware != nil {
		a := advantage.AEPO{Weight: aware.Weight, Scope: advantage.Scope(aware.Scope), Form: advantage.Form(aware.Form)}
		_, e.advantages, err = a.Estimate(b.Names(), out.Rows, b.Entropies(), e.masks())
		return err
	}
	e.advantages, err = advantage.Broadcast(out.Rows, e.masks())
	return err
}

// shared takes an estimator's advantages where shared tokens have one.
func (e *estimation) shared(b advantage.Batch, out advantage.Estimates) (err error) {
	e.advantages, e.returns = out.Tokens, out.Returns
	if out.Tokens == nil {
		if e.advantages, err = advantage.Broadcast(out.Rows, e.masks()); err != nil {
			return err
		}
	}
	e.sharePrefixes(e.advantages)
	aware := e.method.Advantage.EntropyAware
	if aware == nil || out.Tokens != nil {
		return nil
	}
	by, err := factors(advantage.AEPO{Weight: aware.Weight, Scope: advantage.Scope(aware.Scope),
		Form: advantage.Form(aware.Form)}, b, e.masks())
	for i := range by {
		for t := range by[i] {
			e.advantages[i][t] *= by[i][t]
		}
	}
	return err
}

// arlarena is the reward whose value is the sum of an interactive environment's rewards for each turn.
const arlarena = "arlarena"

// input is what the estimators of rl/advantage read from the rows.
func (e *estimation) input() advantage.Batch {
	b := advantage.Batch{
		Rows: make([]advantage.Sample, len(e.rows)), TurnRows: e.method.Layout == method.Turns,
		TokenRewards: e.tokenRewards,
		Entropies: func() [][]float64 {
			return widen(e.rows, func(r *trainingRow) []float32 { return r.entropies })
		},
		Values: func() [][]float64 {
			return widen(e.rows, func(r *trainingRow) []float32 { return r.Values })
		},
	}
	scores := e.scores()
	for i, r := range e.rows {
		s := advantage.Sample{Row: r.name, Reward: r.reward, Score: scores[i], Written: r.written, Mask: r.LossMask}
		if r.turn != nil {
			s.Summary = r.turn.summary
			s.LastTurn, s.Invalid, s.Anchor, s.Observation = r.turn.last, !r.turn.valid, r.turn.seenHash, r.turn.seen
			// The trajectory's reward is the sum of the turns' rewards.
			if s.State = r.turn.situation; e.method.Reward.Name == arlarena {
				s.Paid = r.turn.paid
			}
		}
		b.Rows[i] = s
	}
	return b
}

// tokenRewards puts each row's score on its last token in the loss. It subtracts the penalty on the distance from the
// reference, if the penalty is part of the reward.
func (e *estimation) tokenRewards() ([][]float64, error) {
	scores := e.scores()
	rewards := make([][]float64, len(e.rows))
	for i, r := range e.rows {
		rewards[i] = make([]float64, len(r.TokenIDs))
		for t := len(r.LossMask) - 1; t >= 0; t-- {
			if r.LossMask[t] == 1 {
				rewards[i][t] = scores[i]
				break
			}
		}
	}
	kl := e.method.Loss.KL()
	if kl == nil || kl.In == loss.KLInLoss {
		return rewards, nil
	}
	penalty := loss.KLReward{Estimator: kl.Estimator, Beta: e.beta}
	rewards, mean, err := penalty.Apply(rewards, e.old(), e.references(), e.masks())
	if err != nil {
		return nil, err
	}
	e.steer(mean)
	return rewards, nil
}

// scores are the rows' rewards, minus the penalty of invalid turns.
func (e *estimation) scores() []float64 {
	out := make([]float64, len(e.rows))
	for i, r := range e.rows {
		if out[i] = r.reward; r.turn != nil && !r.turn.valid {
			out[i] -= e.method.Advantage.InvalidPenalty()
		}
	}
	return out
}

func (e *estimation) masks() [][]int32 {
	return each(e.rows, func(r *trainingRow) []int32 { return r.LossMask })
}

func (e *estimation) old() [][]float64 {
	return widen(e.rows, func(r *trainingRow) []float32 { return r.OldLogProbs })
}

func (e *estimation) references() [][]float64 {
	return widen(e.rows, func(r *trainingRow) []float32 { return r.reference })
}

func each[T any](rows []trainingRow, of func(*trainingRow) T) []T {
	out := make([]T, len(rows))
	for i := range rows {
		out[i] = of(&rows[i])
	}
	return out
}

// widen takes a list from each row and converts it to float64.
func widen(rows []trainingRow, of func(*trainingRow) []float32) [][]float64 {
	return each(rows, func(r *trainingRow) []float64 {
		list := of(r)
		out := make([]float64, len(list))
		for t, v := range list {
			out[t] = float64(v)
		}
		return out
	})
}

// batch returns the rows with their advantages multiplied by their weights.
func (e *estimation) batch() []schema.BatchRow {
	out := make([]schema.BatchRow, len(e.rows))
	for i, r := range e.rows {
		row := r.BatchRow
		row.Advantages = make([]float32, len(row.TokenIDs))
		if e.returns != nil {
			row.Returns = make([]float32, len(row.TokenIDs))
		}
		for t, m := range row.LossMask {
			if m != 1 {
				continue
			}
			row.Advantages[t] = float32(e.advantages[i][t] * row.Weight)
			if e.returns != nil {
				row.Returns[t] = float32(e.returns[i][t])
			}
		}
		out[i] = row
	}
	return out
}
