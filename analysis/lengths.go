package analysis

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/internal/simulate"
	"github.com/ropewalk/ropewalk/schema"
)

// timingsCalls is the stage whose manifests hold the times of single tool calls.
const timingsCalls = "timings_calls"

// Lengths returns the rollouts of a finished step for a simulation: the tokens of their contexts and responses, and how
// long the calls of each turn took, without their wait for an executor. A turn takes as long as its slowest call; a
// call that shared another's execution takes no time of its own. Trajectories that were excluded end where they broke.
// Every context is taken to follow what came before, although protocols with a history drop earlier turns.
func (v *Visible) Lengths(ctx context.Context, step int) ([]simulate.Rollout, error) {
	turns, err := whole[schema.TurnRow](ctx, v, step, "group_id", "trajectory_id", "turn", "context_tokens",
		"token_ids")
	if err != nil {
		return nil, err
	}
	seconds, err := v.callSeconds(ctx, step)
	if err != nil {
		return nil, err
	}
	slices.SortFunc(turns, func(a, b schema.TurnRow) int {
		return cmp.Or(cmp.Compare(a.TrajectoryID, b.TrajectoryID), cmp.Compare(a.Turn, b.Turn))
	})
	groups := map[string]int{}
	var out []simulate.Rollout
	for i, t := range turns {
		context, response := t.ContextTokens, int32(len(t.TokenIDs))-t.ContextTokens
		if response < 0 || context < 0 {
			return nil, fmt.Errorf("trajectory %s, turn %d: %d of %d tokens are context", t.TrajectoryID, t.Turn,
				context, len(t.TokenIDs))
		}
		if response == 0 { // the engine broke
			continue
		}
		if i == 0 || turns[i-1].TrajectoryID != t.TrajectoryID {
			if _, known := groups[t.GroupID]; !known {
				groups[t.GroupID] = len(groups)
			}
			out = append(out, simulate.Rollout{Group: groups[t.GroupID], Prompt: max(int(context), 1)})
		} else {
			before := out[len(out)-1].Turns
			before[len(before)-1].Result = context
		}
		r := &out[len(out)-1]
		r.Turns = append(r.Turns, simulate.Turn{Tokens: response, Tool: seconds[turnOf{t.TrajectoryID, t.Turn}]})
	}
	return out, nil
}

// turnOf names a turn.
type turnOf struct {
	trajectory string
	turn       int32
}

// callSeconds returns how long the slowest call of each turn of a step took.
func (v *Visible) callSeconds(ctx context.Context, step int) (map[turnOf]float32, error) {
	places, err := v.placesWithoutHead(schema.Timings, timingsCalls)
	if err != nil {
		return nil, err
	}
	manifests, err := v.at(ctx, slices.DeleteFunc(places, func(p schema.Place) bool {
		n, ok := p.StepNumber()
		return !ok || n != step
	}))
	if err != nil {
		return nil, err
	}
	pieces, err := rowsOf[schema.TimingRow](ctx, v, shardsOf(schema.Timings, manifests))
	if err != nil {
		return nil, err
	}
	out := map[turnOf]float32{}
	for _, rows := range pieces {
		for _, t := range rows {
			if s, ok := t.Seconds(); ok && t.TrajectoryID != "" {
				k := turnOf{t.TrajectoryID, t.Turn}
				out[k] = max(out[k], float32(s))
			}
		}
	}
	return out, nil
}
