package analysis

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// returnDiscount discounts the returns of turns, as GiGPO does (ARLArena Table 8).
const returnDiscount = 0.95

// Properties returns what a run's world offers to the methods before training, from the rows of the first finished
// step, which the first policy sampled. found is false for a run without a finished step, and for an import, which has
// no first policy.
func (r *Record) Properties(ctx context.Context, run string) (out diagnose.PropertyReport, found bool, err error) {
	v, err := r.Visible(ctx, run)
	if err != nil || len(v.steps) == 0 {
		return out, false, err
	}
	_, _, trained, err := v.record.writer.Lookup(ctx, schema.AtInit(run, schema.StageWarmStart))
	if err != nil || !trained {
		return out, false, err
	}
	step := slices.Min(v.steps)
	rewards, err := stepRows[schema.RewardRow](ctx, v, step)
	if err != nil {
		return out, false, err
	}
	turns, err := stepRows[schema.TurnRow](ctx, v, step)
	if err != nil {
		return out, false, err
	}
	transitions, err := stepRows[schema.TransitionRow](ctx, v, step, "trajectory_id", "turn", "situation", "valid",
		"reward")
	if err != nil {
		return out, false, err
	}
	var all diagnose.Properties
	if err := all.Add(sampled(rewards, turns, transitions)...); err != nil {
		return out, false, fmt.Errorf("read the properties of step %d of run %s: %w", step, run, err)
	}
	out, err = all.Report()
	return out, err == nil && out.Trajectories > 0, err
}

// turnKey names a turn of a step.
type turnKey struct {
	trajectory string
	turn       int32
}

// sampled joins the rows of a step. Trajectories without a reward were excluded and are left out.
func sampled(rewards []schema.RewardRow, turns []schema.TurnRow, acts []schema.TransitionRow) []diagnose.Sampled {
	actOf := make(map[turnKey]schema.TransitionRow, len(acts))
	for _, a := range acts {
		actOf[turnKey{a.TrajectoryID, a.Turn}] = a
	}
	turnsOf := map[string][]schema.TurnRow{}
	for _, t := range turns {
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

// WriteProperties prints the properties of a world at step 0 as text.
func WriteProperties(w io.Writer, r diagnose.PropertyReport) error {
	p := &printer{w: w}
	p.line("\nbefore training (%d trajectories in %d groups)      value   wanted by", r.Trajectories, r.Groups)
	for _, property := range r.List() {
		p.line("  %-42s %8s   %s", property.Name, PropertyValue(property), propertyWanted(property))
	}
	return p.err
}

// PropertyValue is a property's value as text, or a dash if the record has no data for it.
func PropertyValue(p diagnose.Property) string {
	switch {
	case !p.Known:
		return noData
	case p.Share:
		return fmt.Sprintf("%.1f%%", 100*p.Value)
	}
	return fmt.Sprintf("%.2f", p.Value)
}

// propertyWanted says which methods want the property, and whether the world has it.
func propertyWanted(p diagnose.Property) string {
	if p.Bound == 0 {
		return p.For
	}
	sign, reached := "≥", "no"
	if p.Below {
		sign = "<"
	}
	if p.Reached() {
		reached = "yes"
	}
	bound := fmt.Sprintf("%g", p.Bound)
	if p.Share {
		bound = fmt.Sprintf("%g%%", 100*p.Bound)
	}
	return fmt.Sprintf("%s (%s %s): %s", p.For, sign, bound, reached)
}
