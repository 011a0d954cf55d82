package analysis

import (
	"context"

	"github.com/ropewalk/ropewalk/schema"
)

// Closeup is one trajectory with everything that was recorded of it and of its tokens.
type Closeup struct {
	Episode
	// Tokens are the numbers of the tokens of all turns, one turn after the other.
	Tokens TokenRow
	Values []float32 // of the critic; nil where not recorded
}

// Closeups returns every trajectory of a finished step, in canonical order.
func (v *Visible) Closeups(ctx context.Context, step int) ([]Closeup, error) {
	episodes, err := v.Episodes(ctx, step)
	if err != nil {
		return nil, err
	}
	outputs, err := stepRows[schema.TokenOutputsRow](ctx, v, step)
	if err != nil {
		return nil, err
	}
	out := make([]Closeup, len(episodes))
	at := make(map[string]*Closeup, len(out))
	for i, e := range episodes {
		out[i] = Closeup{Episode: e}
		if len(e.Turns) > 0 {
			out[i].Tokens = sequence(e.Turns)
			out[i].Tokens.Advantages = out[i].Tokens.whole(e.Advantages)
		}
		at[e.Trajectory.TrajectoryID] = &out[i]
	}
	for _, o := range outputs {
		if c := at[o.TrajectoryID]; c != nil {
			t := &c.Tokens
			t.OldLogProbs, t.ReferenceLogProbs = t.whole(o.OldLogProbs), t.whole(o.ReferenceLogProbs)
			c.Values = t.whole(o.Values)
			if t.Entropies == nil {
				t.Entropies = t.whole(o.Entropies)
			}
		}
	}
	return out, nil
}
