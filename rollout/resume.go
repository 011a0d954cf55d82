package rollout

import (
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Resume applies the finished turns that flows have kept to the committed episodes that they began from. attempts holds
// the rows of each flow. For each episode, the rows of the flow that came furthest count, and among equal ones those of
// the first: a sampler may not repeat itself, so turns of two flows are never mixed. Rows of a flow that began from
// other turns than the committed ones do not count. After an error the episodes are unusable.
func (l *Loop) Resume(episodes []*Episode, attempts []Rows) ([]*Episode, error) {
	by := make([]map[string]*Rows, len(attempts))
	for i, rows := range attempts {
		by[i] = rows.byTrajectory()
	}
	for _, e := range episodes {
		var best Rows
		furthest := 0
		for _, of := range by {
			rows := of[e.TrajectoryID]
			if rows == nil || !rows.continues(e) {
				continue
			}
			more := rows.after(e)
			if n := more.size(); n > furthest {
				best, furthest = more, n
			}
		}
		if furthest == 0 {
			continue
		}
		if _, err := l.Advance([]*Episode{e}, best); err != nil {
			return nil, err
		}
	}
	return episodes, nil
}

// size counts turns and results of turns.
func (r Rows) size() int { return len(r.Turns) + len(r.Calls) + len(r.Transitions) }

// byTrajectory divides rows.
func (r Rows) byTrajectory() map[string]*Rows {
	out := map[string]*Rows{}
	of := func(trajectory string) *Rows {
		if out[trajectory] == nil {
			out[trajectory] = &Rows{}
		}
		return out[trajectory]
	}
	for _, t := range r.Turns {
		own := of(t.TrajectoryID)
		own.Turns = append(own.Turns, t)
	}
	for _, c := range r.Calls {
		own := of(c.TrajectoryID)
		own.Calls = append(own.Calls, c)
	}
	for _, t := range r.Transitions {
		own := of(t.TrajectoryID)
		own.Transitions = append(own.Transitions, t)
	}
	return out
}

// continues reports whether the rows of one trajectory are those of the episode so far, and of the turns after it
// without a gap.
func (r Rows) continues(e *Episode) bool {
	next := -1
	for _, t := range r.Turns {
		turn, n := int(t.Turn), int(t.ContextTokens)
		if next >= 0 && turn != next || next < 0 && turn > len(e.Turns) || n < 0 || n > len(t.TokenIDs) {
			return false
		}
		if turn < len(e.Turns) && !slices.Equal(t.TokenIDs[n:], e.Turns[turn].Response) {
			return false
		}
		next = turn + 1
	}
	return true
}

// after returns the rows that the episode does not have.
func (r Rows) after(e *Episode) Rows {
	have := len(e.Turns)
	known := have // turns whose results the episode has, or will not have
	if e.AwaitsResults() {
		known--
	}
	return Rows{
		Turns: slices.DeleteFunc(slices.Clone(r.Turns), func(t schema.TurnRow) bool { return int(t.Turn) < have }),
		Calls: slices.DeleteFunc(slices.Clone(r.Calls), func(c schema.ToolCallRow) bool { return int(c.Turn) < known }),
		Transitions: slices.DeleteFunc(slices.Clone(r.Transitions), func(t schema.TransitionRow) bool {
			return int(t.Turn) < known
		}),
	}
}
