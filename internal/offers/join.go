// Package offers computes what a world offers to the methods before training, from the rows of a run's first step.
//
// Glossary. A *property* is a number about the sampled trajectories that a method acts on (rl/diagnose). The stage
// resample commits the properties of step 1 among its statistics, which readers read.
//
//	rewards, turns, transitions ─ Join → diagnose.Properties ─ Stats → a manifest's statistics ─ Read → the report
package offers

import (
	"cmp"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// returnDiscount discounts the returns of turns, as GiGPO does (ARLArena Table 8).
const returnDiscount = 0.95

// The columns that Join reads of turns and of transitions.
var (
	TurnColumns = []string{"trajectory_id", "turn", "anchor_hash", "loss_mask", "entropies", "parsed_calls",
		"answered", "summary"}
	TransitionColumns = []string{"trajectory_id", "turn", "situation", "valid", "reward"}
)

// turnKey names a turn of a step.
type turnKey struct {
	trajectory string
	turn       int32
}

// Join joins rows of a step. Trajectories without a reward were excluded and are left out.
func Join(rewards []schema.RewardRow, turns []schema.TurnRow, acts []schema.TransitionRow) []diagnose.Sampled {
	actOf := make(map[turnKey]schema.TransitionRow, len(acts))
	for _, a := range acts {
		actOf[turnKey{a.TrajectoryID, a.Turn}] = a
	}
	turnsOf := map[string][]schema.TurnRow{}
	for _, t := range turns {
		if t.IsSummary() { // the properties are about calls and actions
			continue
		}
		turnsOf[t.TrajectoryID] = append(turnsOf[t.TrajectoryID], t)
	}
	out := make([]diagnose.Sampled, len(rewards))
	for i, r := range rewards {
		out[i] = diagnose.Sampled{Group: r.GroupID, Reward: r.Reward, Success: r.Success, Calls: int(r.ToolCalls),
			Failed: int(r.ToolErrors), Turns: sampledTurns(r, turnsOf[r.TrajectoryID], actOf)}
	}
	return out
}

// sampledTurns returns a trajectory's turns with their returns. Without rewards of turns, the whole reward is the last
// turn's.
func sampledTurns(
	r schema.RewardRow, turns []schema.TurnRow, actOf map[turnKey]schema.TransitionRow,
) []diagnose.SampledTurn {
	slices.SortFunc(turns, func(a, b schema.TurnRow) int { return cmp.Compare(a.Turn, b.Turn) })
	out := make([]diagnose.SampledTurn, len(turns))
	later := 0.0
	for i, t := range slices.Backward(turns) {
		act, acted := actOf[turnKey{t.TrajectoryID, t.Turn}]
		valid, _ := t.Valid()
		reward := 0.0
		switch {
		case acted:
			valid, reward = act.Valid, act.Reward
		case i == len(turns)-1:
			reward = r.Reward
		}
		later = reward + returnDiscount*later
		out[i] = diagnose.SampledTurn{Anchor: t.AnchorHash, Return: later, Valid: valid, Entropy: meanEntropy(t)}
		if acted {
			out[i].Anchor = act.Situation
		}
	}
	return out
}

// meanEntropy is the mean over a response's tokens, or NaN if there are none.
func meanEntropy(t schema.TurnRow) float64 {
	sum, n := 0.0, 0
	for i, m := range t.LossMask {
		if m == 1 && i < len(t.Entropies) {
			sum += float64(t.Entropies[i])
			n++
		}
	}
	if n == 0 {
		return math.NaN()
	}
	return sum / float64(n)
}
