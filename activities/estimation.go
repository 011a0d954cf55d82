package activities

import (
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/schema"
)

// estimation gives the tokens of a step's rows their advantages, as the method's slots say. It is a
// function of committed rows alone.
//
// Scores. A trajectory's reward is the score of its row; in layout turns it is that of each of its
// turns' rows, less invalid_penalty where the turn is invalid. Where an estimator takes rewards of
// tokens, a row's score stands on its last token. Environments pay at a trajectory's end, so that the
// reward of a turn is 0 but for the last one's.
type estimation struct {
	method     method.Method
	rows       []trainingRow
	beta       float64 // coefficient of the penalty in the reward, or of one that adapts in the loss
	advantages [][]float64
	returns    [][]float64 // what the critic learns, if there is one
	stats      map[string]float64
}

func (e *estimation) run() (err error) {
	if e.method.Advantage.InvalidPenalty > 0 {
		for _, r := range e.rows {
			if r.turn != nil && !r.turn.known {
				return refuse(wire.FailRefused, "advantage.invalid_penalty needs to know whether turn %d of trajectory %s is valid, which the record does not say", r.name.Turn, r.TrajectoryID)
			}
		}
	}
	if err := e.estimate(); err != nil {
		return fmt.Errorf("advantage.name %s: %w", e.method.Advantage.Name, err)
	}
	if err := e.measure(); err != nil {
		return fmt.Errorf("loss.kl: %w", err)
	}
	return nil
}

func (e *estimation) estimate() (err error) {
	switch e.method.Advantage.Name {
	case "reinforce_pp":
		return e.reinforce()
	case "reinforce_pp_baseline":
		e.advantages, err = advantage.ReinforcePPBaseline{}.Estimate(e.scores(), e.groups(), e.masks())
		return err
	case "gae":
		return e.gae()
	}
	perRow, err := e.perRow()
	if err != nil {
		return err
	}
	if aware := e.method.Advantage.EntropyAware; aware != nil {
		a := advantage.AEPO{Weight: aware.Weight, Scope: advantage.Scope(aware.Scope), Form: advantage.Form(aware.Form)}
		_, e.advantages, err = a.Estimate(e.names(), perRow, widen(e.rows, func(r *trainingRow) []float32 { return r.entropies }), e.masks())
		return err
	}
	e.advantages, err = advantage.Broadcast(perRow, e.masks())
	return err
}

// perRow runs the estimators that give a row one advantage.
func (e *estimation) perRow() ([]float64, error) {
	switch a := e.method.Advantage; a.Name {
	case "grpo":
		return e.group()
	case "rloo":
		return advantage.RLOO{SingleGroup: advantage.SingleGroup(a.SingleGroup)}.Estimate(e.scores(), e.groups())
	case "opo":
		lengths := each(e.rows, func(r *trainingRow) int { return r.written })
		return advantage.OPO{SingleGroup: advantage.SingleGroup(a.SingleGroup)}.Estimate(e.scores(), lengths, e.groups())
	case "gpg":
		return advantage.GPG{Idle: advantage.Idle(a.Idle), SingleGroup: advantage.SingleGroup(a.SingleGroup)}.Estimate(e.scores(), e.groups())
	case "gigpo":
		return e.gigpo()
	case "empg":
		return e.empg()
	default:
		return nil, fmt.Errorf("no stage builds it")
	}
}

func (e *estimation) norm() advantage.Group {
	a := e.method.Advantage
	return advantage.Group{Std: a.Std, SingleGroup: advantage.SingleGroup(a.SingleGroup)}
}

// group is GRPO's estimator over rows of either layout.
func (e *estimation) group() ([]float64, error) {
	if e.method.Layout == method.Turns {
		return advantage.TurnRows{Norm: e.norm(), Stats: advantage.Stats(e.method.Advantage.Stats)}.Estimate(e.scores(), e.names())
	}
	return e.norm().Estimate(e.scores(), e.groups())
}

func (e *estimation) gigpo() ([]float64, error) {
	a := e.method.Advantage
	g := advantage.GiGPO{
		Gamma: a.Gamma, Omega: a.Omega, Mode: advantage.ModeMeanNorm, InvalidPenalty: a.InvalidPenalty,
		SingleGroup: advantage.SingleGroup(a.SingleGroup), Stats: advantage.Stats(a.Stats),
	}
	if a.Std {
		g.Mode = advantage.ModeMeanStdNorm
	}
	similar := a.Anchors == "similar"
	if similar && a.Similarity < 1 { // 1 asks for equal texts
		g.Anchors = advantage.Anchors{Similarity: a.Similarity, RatcliffObershelp: advantage.RatcliffObershelp{NoAutojunk: !a.Autojunk}}
	}
	turns := make([]advantage.GiGPORow, len(e.rows))
	for i, r := range e.rows {
		turns[i] = advantage.GiGPORow{Row: r.name, Observation: r.turn.seenHash, Invalid: !r.turn.valid}
		if similar {
			turns[i].Observation = r.turn.seen
		}
		if r.turn.last {
			turns[i].Reward = r.reward
		}
	}
	out, err := g.Estimate(turns)
	return out.Advantage, err
}

// empg modulates GRPO's advantages. Rows without a token in the loss take no part.
func (e *estimation) empg() ([]float64, error) {
	base, err := e.group()
	if err != nil {
		return nil, err
	}
	rows := make([]advantage.EMPGRow, len(e.rows))
	entropies := widen(e.rows, func(r *trainingRow) []float32 { return r.entropies })
	for i, r := range e.rows {
		rows[i] = advantage.EMPGRow{Row: r.name, Advantage: base[i], Dead: !slices.Contains(r.LossMask, 1)}
		if rows[i].Entropy, err = advantage.TurnEntropy(entropies[i], r.LossMask); err != nil {
			return nil, err
		}
	}
	a := e.method.Advantage
	out, err := advantage.EMPG{K: a.K, KPrime: a.KPrime, Zeta: a.Zeta}.Estimate(rows)
	return out.Advantage, err
}

func (e *estimation) reinforce() error {
	rewards, err := e.tokenRewards()
	if err != nil {
		return err
	}
	r := advantage.ReinforcePP{Gamma: e.method.Advantage.Gamma, Gap: advantage.Gap(e.method.Advantage.Returns)}
	_, e.advantages, err = r.Estimate(rewards, e.masks())
	return err
}

func (e *estimation) gae() error {
	rewards, err := e.tokenRewards()
	if err != nil {
		return err
	}
	a := e.method.Advantage
	g := advantage.GAE{Gamma: a.Gamma, Lambda: a.Lambda, NoSkip: a.Returns == string(advantage.GapReset)}
	out, err := g.Estimate(rewards, widen(e.rows, func(r *trainingRow) []float32 { return r.Values }), e.masks())
	e.advantages, e.returns = out.Whitened, out.Returns
	return err
}

// tokenRewards puts each row's score on its last token in the loss, less the penalty on the distance
// from the reference where that is part of the reward.
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
	kl := e.method.Loss.KL
	if kl == nil || kl.In == klInLoss {
		return rewards, nil
	}
	penalty := loss.KLReward{Estimator: loss.Estimator(kl.Estimator), Beta: e.beta}
	rewards, mean, err := penalty.Apply(rewards, e.old(), e.references(), e.masks())
	if err != nil {
		return nil, err
	}
	e.steer(mean)
	return rewards, nil
}

// scores are the rows' rewards, less the penalty of invalid turns.
func (e *estimation) scores() []float64 {
	out := make([]float64, len(e.rows))
	for i, r := range e.rows {
		if out[i] = r.reward; r.turn != nil && !r.turn.valid {
			out[i] -= e.method.Advantage.InvalidPenalty
		}
	}
	return out
}

func (e *estimation) groups() []string {
	return each(e.rows, func(r *trainingRow) string { return r.GroupID })
}
func (e *estimation) names() []advantage.Row {
	return each(e.rows, func(r *trainingRow) advantage.Row { return r.name })
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

// widen takes a list out of each row.
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

// batch returns the rows, their advantages multiplied by their weights.
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
