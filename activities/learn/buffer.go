package learn

import (
	"fmt"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/resample"
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
	held     map[heldRow]schema.ReplayRow // the tokens
	replayed resample.Replayed
	batch    []schema.BatchRow
}

// heldRow names a row of the batch: a trajectory, or one turn of it in layout turns.
type heldRow struct {
	trajectory string
	turn       int // 0 for a trajectory
}

// OpenBuffer returns the buffer that the previous step left; nil rows make an empty buffer.
func OpenBuffer(rows []schema.ReplayRow, baselines []schema.BaselineRow) *Buffer {
	b := &Buffer{held: map[heldRow]schema.ReplayRow{}}
	for _, r := range rows {
		turn := turnOf(r.Turn)
		b.held[heldRow{r.TrajectoryID, turn}] = r
		b.state.Entries = append(b.state.Entries, resample.Entry{
			Step: int(r.Collected), GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Turn: turn, Reward: r.Reward,
			Advantage: r.Advantage,
		})
	}
	for _, r := range baselines {
		b.state.Baselines = append(b.state.Baselines, advantage.Baseline{Step: int(r.Collected), Group: r.GroupID,
			Mean: r.Mean})
	}
	return b
}

// turnOf is the turn of a row; 0 for a trajectory.
func turnOf(turn *int32) int {
	if turn == nil {
		return 0
	}
	return int(*turn)
}

// Advance takes the state through a step with these rewards and this training batch.
func (b *Buffer) Advance(rules resample.Replay, step int, rewards []schema.RewardRow, rows []schema.BatchRow) error {
	if err := b.take(step, rewards, rows); err != nil {
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
		held, ok := b.held[heldRow{v.Entry.TrajectoryID, v.Entry.Turn}]
		if !ok {
			return fmt.Errorf("the replay batch takes turn %d of trajectory %s, and the buffer has no tokens of it",
				v.Entry.Turn, v.Entry.TrajectoryID)
		}
		b.batch = append(b.batch, replayRow(held, v.Recalibrated))
	}
	return nil
}

// take lists the rows of the batch with the rewards of their trajectories. A trajectory that resampling dropped has no
// row there. It counts towards its group's mean; without an advantage it never enters the buffer.
func (b *Buffer) take(step int, rewards []schema.RewardRow, rows []schema.BatchRow) error {
	kept := make(map[string][]schema.BatchRow, len(rows))
	for _, row := range rows {
		kept[row.TrajectoryID] = append(kept[row.TrajectoryID], row)
	}
	for _, r := range rewards {
		all := kept[r.TrajectoryID]
		delete(kept, r.TrajectoryID)
		if len(all) == 0 {
			b.rows = append(b.rows, replayable(r))
		}
		for _, k := range all {
			row := replayable(r)
			row.Turn, row.Advantage = turnOf(k.Turn), meanAdvantage(k)
			b.rows = append(b.rows, row)
			if row.Advantage > 0 {
				b.held[heldRow{r.TrajectoryID, row.Turn}] = schema.ReplayRow{
					GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Collected: int32(step), Reward: r.Reward,
					Advantage: row.Advantage,
					TokenIDs:  k.TokenIDs, LossMask: k.LossMask, OldLogProbs: k.OldLogProbs, Turn: k.Turn,
				}
			}
		}
	}
	for id := range kept {
		return refusal.Corruptf("trajectory %s is in the batch and has no reward", id)
	}
	return nil
}

// replayable is a trajectory as the buffer's rules read it, without an advantage.
func replayable(r schema.RewardRow) resample.ReplayRow {
	return resample.ReplayRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
		ToolCalls: int(r.ToolCalls)}
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

// replayRow converts a held row to a training row with its current advantage.
func replayRow(held schema.ReplayRow, recalibrated float64) schema.BatchRow {
	row := schema.BatchRow{
		GroupID: held.GroupID, TrajectoryID: held.TrajectoryID, Count: 1, Weight: 1, Turn: held.Turn,
		TokenIDs: held.TokenIDs, LossMask: held.LossMask, OldLogProbs: held.OldLogProbs,
		Advantages: make([]float32, len(held.TokenIDs)),
	}
	for t, m := range held.LossMask {
		if m != 0 {
			row.Advantages[t] = float32(recalibrated)
		}
	}
	return row
}
