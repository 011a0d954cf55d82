package rollout

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// Resume applies the finished turns that flows have kept to the committed episodes that they began from. attempts holds
// the rows of each flow. For each episode, the rows of the flow that came furthest count, and among equal ones those of
// the first: a sampler may not repeat itself, so turns of two flows are never mixed. Rows of a flow that differ from
// the committed turns do not count.
//
// Rows may be missing, where turns were committed before they were kept or rows were lost, and may be there twice. An
// episode goes on to the last turn, or the last results, up to which its rows are whole.
//
// Resume returns how many turns, and results of turns, it has applied.
func (l *Loop) Resume(ctx context.Context, episodes []*Episode, attempts []Rows) (applied int) {
	by := make([]map[string]*kept, len(attempts))
	for i, rows := range attempts {
		by[i] = rows.byTrajectory()
	}
	for _, e := range episodes {
		best, furthest := *e, 0
		for _, of := range by {
			k := of[e.TrajectoryID]
			if k == nil || !k.agrees(e) {
				continue
			}
			own := *e
			own.Turns = slices.Clone(e.Turns)
			if n := k.continueAll(ctx, l, &own); n > furthest {
				best, furthest = own, n
			}
		}
		*e = best
		applied += furthest
	}
	return applied
}

// kept are the rows that one flow has kept of one trajectory, by turn.
type kept struct {
	turns       map[int32]schema.TurnRow
	branches    map[int32]schema.BranchRow // of a tree
	calls       map[int32][]schema.ToolCallRow
	transitions map[int32]schema.TransitionRow
	last        int32 // the latest turn of which there are rows
}

// size counts turns and results of turns.
func (r Rows) size() int { return len(r.Turns) + len(r.Calls) + len(r.Transitions) }

// byTrajectory divides rows.
func (r Rows) byTrajectory() map[string]*kept {
	out := map[string]*kept{}
	of := func(trajectory string, turn int32) *kept {
		k := out[trajectory]
		if k == nil {
			k = &kept{map[int32]schema.TurnRow{}, map[int32]schema.BranchRow{}, map[int32][]schema.ToolCallRow{},
				map[int32]schema.TransitionRow{}, turn}
			out[trajectory] = k
		}
		k.last = max(k.last, turn)
		return k
	}
	for _, t := range r.Turns {
		of(t.TrajectoryID, t.Turn).turns[t.Turn] = t
	}
	for _, b := range r.Branches {
		of(b.TrajectoryID, b.Turn).branches[b.Turn] = b
	}
	for _, c := range r.Calls {
		k := of(c.TrajectoryID, c.Turn)
		k.calls[c.Turn] = append(k.calls[c.Turn], c)
	}
	for _, t := range r.Transitions {
		of(t.TrajectoryID, t.Turn).transitions[t.Turn] = t
	}
	return out
}

// agrees reports whether the turns of the episode that were also kept are the same.
func (k *kept) agrees(e *Episode) bool {
	for turn := range e.Turns {
		row, ok := k.turns[int32(turn)]
		n := int(row.ContextTokens)
		if ok && (n < 0 || n > len(row.TokenIDs) || !slices.Equal(row.TokenIDs[n:], e.Turns[turn].Response)) {
			return false
		}
	}
	return true
}

// hasResults reports whether there are results of a turn.
func (k *kept) hasResults(turn int32) bool {
	_, acted := k.transitions[turn]
	return acted || len(k.calls[turn]) > 0
}

// continueAll applies rows to the episode as far as they continue it, and counts the turns and the results of turns.
func (k *kept) continueAll(ctx context.Context, l *Loop, e *Episode) (steps int) {
	for {
		more, err := k.continueOne(ctx, l, e)
		if err != nil {
			slog.Debug("an episode does not go on to all that was kept of it", "trajectory", e.TrajectoryID, "turns",
				len(e.Turns), "error", err)
		}
		if err != nil || !more {
			return steps
		}
		steps++
	}
}

// continueOne applies one turn, or the results of one. An error leaves the episode as it was.
func (k *kept) continueOne(ctx context.Context, l *Loop, e *Episode) (more bool, err error) {
	switch turn := int32(len(e.Turns)); {
	case e.AwaitsResponse():
		row, ok := k.turns[turn]
		if !ok {
			return false, k.missing(turn, "tokens of ")
		}
		if row.AnchorHash != anchorOf(e.Prefix()) {
			return false, fmt.Errorf("the policy saw other turns before turn %d: %w", turn, ErrRows)
		}
		return true, l.replayTurn(ctx, e, row)
	case e.AwaitsResults():
		return k.continueResults(ctx, l, e, turn-1)
	}
	return false, nil
}

func (k *kept) continueResults(ctx context.Context, l *Loop, e *Episode, turn int32) (more bool, err error) {
	key := callKey{e.TrajectoryID, turn}
	if row, ok := k.transitions[turn]; ok {
		steps, err := groupTransitions([]schema.TransitionRow{row})
		if err != nil {
			return false, err
		}
		return true, l.replayTransition(ctx, e, steps, key)
	}
	calls := k.calls[turn]
	if len(calls) == 0 {
		return false, k.missing(turn, "the results of ")
	}
	slices.SortStableFunc(calls, func(a, b schema.ToolCallRow) int { return cmp.Compare(a.Call, b.Call) })
	results, err := groupCalls(slices.CompactFunc(slices.Clone(calls),
		func(a, b schema.ToolCallRow) bool { return a.Call == b.Call }))
	if err != nil {
		return false, err
	}
	return true, l.replayCalls(e, results[key])
}

// missing is an error if there are rows of later turns.
func (k *kept) missing(turn int32, what string) error {
	if turn < k.last {
		return fmt.Errorf("%sturn %d are missing: %w", what, turn, ErrRows)
	}
	return nil
}
