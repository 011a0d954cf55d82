package rollout

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/schema"
)

// TransitionRows returns the rows of one turn's transitions, in the order of the episodes.
func TransitionRows(episodes []*Episode, turn int) ([]schema.TransitionRow, error) {
	var rows []schema.TransitionRow
	for _, e := range episodes {
		if turn >= len(e.Turns) || e.Turns[turn].Transition == nil {
			continue
		}
		t := e.Turns[turn].Transition
		row := schema.TransitionRow{
			GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Turn: int32(turn), SeenHash: t.SeenHash,
			Situation: t.Situation,
			Action:    t.Action, WellFormed: t.Formed, Valid: t.Valid, Reward: t.Reward, Done: t.Done,
			Success: t.Success,
			State:   string(t.State), Excluded: nullable(t.Excluded),
		}
		row.Observation, _ = t.Seen.Text()
		if t.Seen.Admissible != nil {
			list, err := json.Marshal(t.Seen.Admissible)
			if err != nil {
				return nil, fmt.Errorf("write the transition of %s at turn %d: %w", e.TrajectoryID, turn, err)
			}
			row.Admissible = new(string(list))
		}
		rows = append(rows, row)
	}
	return rows, nil
}

// groupTransitions finds the transition of each turn. A turn has at most one transition.
func groupTransitions(rows []schema.TransitionRow) (map[callKey]*Transition, error) {
	out := make(map[callKey]*Transition, len(rows))
	for _, r := range rows {
		key := callKey{r.TrajectoryID, r.Turn}
		if out[key] != nil {
			return nil, fmt.Errorf("rebuild %s: turn %d has two transitions: %w", r.TrajectoryID, r.Turn, ErrRows)
		}
		t := &Transition{
			Situation: r.Situation, SeenHash: r.SeenHash, Action: r.Action, Formed: r.WellFormed, Valid: r.Valid,
			Reward: r.Reward, Done: r.Done, Success: r.Success, State: env.State(r.State),
			Excluded: textOrEmpty(r.Excluded),
		}
		t.Seen.Parts = []env.Part{{Kind: env.PartText, Text: r.Observation}}
		if r.Admissible != nil {
			if err := json.Unmarshal([]byte(*r.Admissible), &t.Seen.Admissible); err != nil {
				return nil, fmt.Errorf("rebuild %s: the admissible actions after turn %d: %w: %w", r.TrajectoryID,
					r.Turn, err, ErrRows)
			}
		}
		out[key] = t
	}
	return out, nil
}

// replayTransition absorbs a turn's committed transition and removes it from steps. If there is none, the action has
// not been applied yet.
func (l *Loop) replayTransition(ctx context.Context, e *Episode, steps map[callKey]*Transition, key callKey) error {
	t := steps[key]
	if t == nil {
		return nil
	}
	delete(steps, key)
	if l.settings.Environment == nil || !e.AwaitsResults() || e.Turns[len(e.Turns)-1].Parsed.Action != t.Action {
		return fmt.Errorf("a transition for a response that asked for another action: %w", ErrRows)
	}
	return l.absorbTransition(ctx, e, *t)
}
