package learn

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// ReplayRules returns the buffer's rules from the recipe.
func ReplayRules(r *recipes.Replay) resample.Replay {
	return resample.Replay{
		Capacity: r.Size, Baselines: r.Baselines, Full: resample.FullRule(r.FullRule), MaxAge: r.MaxAge,
		RequireToolCall: r.RequireToolCall,
		Decay:           r.Decay,
	}
}

// Buffer is the state between two steps, with the rows of the buffer and of the step.
type Buffer struct {
	state    resample.Buffer
	rows     []resample.ReplayRow
	history  rollout.History             // batch.History of the recipe
	held     map[string]schema.ReplayRow // the tokens, by trajectory
	replayed resample.Replayed
	batch    []schema.BatchRow
}

// OpenBuffer returns the buffer that the previous step left; nil rows make an empty buffer. The history is that of the
// policy's prompts (batch.History).
func OpenBuffer(history rollout.History, rows []schema.ReplayRow, baselines []schema.BaselineRow) *Buffer {
	b := &Buffer{history: history, held: map[string]schema.ReplayRow{}}
	for _, r := range rows {
		b.held[r.TrajectoryID] = r
		b.state.Entries = append(b.state.Entries, resample.Entry{
			Step: int(r.Collected), GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			Advantage: r.Advantage,
		})
	}
	for _, r := range baselines {
		b.state.Baselines = append(b.state.Baselines, advantage.Baseline{Step: int(r.Collected), Group: r.GroupID,
			Mean: r.Mean})
	}
	return b
}

// Advance takes the state through a step with these rewards and this training batch.
func (b *Buffer) Advance(rules resample.Replay, step int, rewards []schema.RewardRow, rows []schema.BatchRow) error {
	if err := b.join(step, rewards, rows); err != nil {
		return err
	}
	var err error
	if b.state, b.replayed, err = rules.Advance(b.state, step, b.rows, nil); err != nil {
		return err
	}
	for _, v := range b.replayed.Verdicts {
		if v.Fate != resample.Imitated {
			continue
		}
		held, ok := b.held[v.Entry.TrajectoryID]
		if !ok {
			return fmt.Errorf("the replay batch takes trajectory %s, and the buffer has no tokens of it",
				v.Entry.TrajectoryID)
		}
		b.batch = append(b.batch, replayRows(held, v.Recalibrated, b.history)...)
	}
	return nil
}

// join lists every trajectory with a reward and joins the rows of its turns to one row. A trajectory that resampling
// dropped counts towards its group's mean; it has no advantage, so it never enters the buffer.
func (b *Buffer) join(step int, rewards []schema.RewardRow, rows []schema.BatchRow) error {
	kept := make(map[string]schema.BatchRow, len(rows))
	for _, row := range batch.Whole(rows, b.history) {
		kept[row.TrajectoryID] = row
	}
	for _, r := range rewards {
		row := resample.ReplayRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			ToolCalls: int(r.ToolCalls)}
		if k, ok := kept[r.TrajectoryID]; ok {
			delete(kept, r.TrajectoryID)
			row.Advantage = meanAdvantage(k)
			if row.Advantage > 0 {
				b.held[r.TrajectoryID] = schema.ReplayRow{
					GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Collected: int32(step), Reward: r.Reward,
					Advantage: row.Advantage,
					TokenIDs:  k.TokenIDs, LossMask: k.LossMask, OldLogProbs: k.OldLogProbs,
				}
			}
		}
		b.rows = append(b.rows, row)
	}
	for id := range kept {
		return refusal.Corruptf("trajectory %s is in the batch and has no reward", id)
	}
	return nil
}

// meanAdvantage is the mean over a row's loss tokens; 0 for a row without any.
func meanAdvantage(row schema.BatchRow) float64 {
	sum, n := 0.0, 0.0
	for t, m := range row.LossMask {
		if m != 0 {
			sum, n = sum+float64(row.Advantages[t]), n+1
		}
	}
	if n == 0 {
		return 0
	}
	return sum / n
}

// replayRows converts a held trajectory to training rows with its current advantage. If its policy saw only the
// latest turns, there is one row for each turn.
func replayRows(held schema.ReplayRow, recalibrated float64, history rollout.History) []schema.BatchRow {
	row := schema.BatchRow{
		GroupID: held.GroupID, TrajectoryID: held.TrajectoryID, Count: 1, Weight: 1,
		TokenIDs: held.TokenIDs, LossMask: held.LossMask, OldLogProbs: held.OldLogProbs,
		Advantages: make([]float32, len(held.TokenIDs)),
	}
	for t, m := range held.LossMask {
		if m != 0 {
			row.Advantages[t] = float32(recalibrated)
		}
	}
	if history == (rollout.History{}) {
		return []schema.BatchRow{row}
	}
	return batch.CutTurns(row, history)
}
