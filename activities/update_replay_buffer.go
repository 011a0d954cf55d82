package activities

import (
	"context"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/advantage"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
)

// UpdateReplayBuffer takes the replay buffer and the queue of baselines through one step (SPEAR,
// Algorithm 1), and commits what they are after it. Where the buffer was full, its trajectories are judged
// again, and those still worth it become the step's replay batch.
type UpdateReplayBuffer struct{ *Deps }

// Statistics of the stage buffer, and of an update after it.
const (
	statStored    = "stored"    // trajectories that entered
	statConsumed  = "consumed"  // 1 where the buffer was full, else 0
	statImitated  = "imitated"  // trajectories of the replay batch
	statP50       = "p50"       // median of the baselines
	statBaselines = "baselines" // groups in the queue
	statReplayed  = "replayed"  // mean Ã of the replay batch
	statBuffered  = "buffered"  // trajectories in the buffer after the step
	statGamma     = "gamma"     // weight of the imitation
)

// Execute commits tables replay and baselines and, of a full buffer, replay_batch.
func (a UpdateReplayBuffer) Execute(ctx context.Context, in wire.BufferInput) (wire.Buffered, error) {
	out := wire.Buffered{}
	s := spec{scope: in.Scope, stage: wire.StageBuffer, turn: -1, shard: -1}
	if in.Previous != (schema.Ref{}) {
		s.inputs = append(s.inputs, in.Previous)
	}
	s.inputs = append(s.inputs, in.Rewards, in.Batch)
	err := execute(ctx, a.Deps, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if recipe.Replay == nil {
			return refuse(wire.FailRefused, "the recipe has no section replay, so there is no buffer")
		}
		b, err := a.begin(ctx, in, recipe.Rollout.History)
		if err != nil {
			return err
		}
		if err := b.advance(replayRules(recipe.Replay), in.Step); err != nil {
			return err
		}
		b.count(w, &out)
		return a.commit(ctx, w, b)
	})
	return out, err
}

// replayRules takes the buffer's rules out of the recipe.
func replayRules(r *recipes.Replay) resample.Replay {
	return resample.Replay{
		Capacity: r.Size, Baselines: r.Baselines, Full: resample.FullRule(r.FullRule), MaxAge: r.MaxAge, RequireToolCall: r.RequireToolCall,
		Decay: r.Decay,
	}
}

// buffer is the state between two steps, with the rows that it and the step hold.
type buffer struct {
	state    resample.Buffer
	rows     []resample.ReplayRow
	history  int                         // of the prompts of turns
	held     map[string]schema.ReplayRow // the tokens, by trajectory
	replayed resample.Replayed
	batch    []schema.BatchRow // what is learnt from again
}

// begin reads the state that the step before left, and the step's rewards and batch.
func (a UpdateReplayBuffer) begin(ctx context.Context, in wire.BufferInput, history int) (*buffer, error) {
	b := &buffer{history: history, held: map[string]schema.ReplayRow{}}
	if in.Previous != (schema.Ref{}) {
		rows, err := read[schema.ReplayRow](ctx, a.Deps, in.Previous)
		if err != nil {
			return nil, err
		}
		baselines, err := read[schema.BaselineRow](ctx, a.Deps, in.Previous)
		if err != nil {
			return nil, err
		}
		b.restore(rows, baselines)
	}
	rewards, err := read[schema.RewardRow](ctx, a.Deps, in.Rewards)
	if err != nil {
		return nil, err
	}
	batch, err := a.readBatch(ctx, in.Batch)
	if err != nil {
		return nil, err
	}
	return b, b.join(in.Step, rewards, batch)
}

func (b *buffer) restore(rows []schema.ReplayRow, baselines []schema.BaselineRow) {
	for _, r := range rows {
		b.held[r.TrajectoryID] = r
		b.state.Entries = append(b.state.Entries, resample.Entry{
			Step: int(r.Collected), GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward, Advantage: r.Advantage,
		})
	}
	for _, r := range baselines {
		b.state.Baselines = append(b.state.Baselines, advantage.Baseline{Step: int(r.Collected), Group: r.GroupID, Mean: r.Mean})
	}
}

// join lists every trajectory with a reward, the rows of its turns as one: what the step's resampling dropped counts towards its
// group's mean and, without an advantage, never enters the buffer.
func (b *buffer) join(step int, rewards []schema.RewardRow, batch []schema.BatchRow) error {
	kept := make(map[string]schema.BatchRow, len(batch))
	for _, row := range whole(batch, b.history) {
		kept[row.TrajectoryID] = row
	}
	for _, r := range rewards {
		row := resample.ReplayRow{GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward, ToolCalls: int(r.ToolCalls)}
		if k, ok := kept[r.TrajectoryID]; ok {
			delete(kept, r.TrajectoryID)
			row.Advantage = meanAdvantage(k)
			if row.Advantage > 0 {
				b.held[r.TrajectoryID] = schema.ReplayRow{
					GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Collected: int32(step), Reward: r.Reward, Advantage: row.Advantage,
					TokenIDs: k.TokenIDs, LossMask: k.LossMask, OldLogProbs: k.OldLogProbs,
				}
			}
		}
		b.rows = append(b.rows, row)
	}
	for id := range kept {
		return refuse(wire.FailCorrupt, "trajectory %s is in the batch and has no reward", id)
	}
	return nil
}

// meanAdvantage is the mean over a row's loss tokens; 0 of a row without any.
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

// advance takes the state through the step.
func (b *buffer) advance(rules resample.Replay, step int) (err error) {
	if b.state, b.replayed, err = rules.Advance(b.state, step, b.rows, nil); err != nil {
		return err
	}
	for _, v := range b.replayed.Verdicts {
		if v.Fate != resample.Imitated {
			continue
		}
		held, ok := b.held[v.Entry.TrajectoryID]
		if !ok {
			return fmt.Errorf("trajectory %s is to be learnt from again and the buffer has no tokens of it", v.Entry.TrajectoryID)
		}
		b.batch = append(b.batch, replayRows(held, v.Recalibrated, b.history)...)
	}
	return nil
}

// replayRows is a held trajectory as it is learnt from again: once, with the advantage that it has now. Where
// its policy saw the latest turns alone, it is the rows of its turns.
func replayRows(held schema.ReplayRow, recalibrated float64, history int) []schema.BatchRow {
	row := schema.BatchRow{
		GroupID: held.GroupID, TrajectoryID: held.TrajectoryID, Count: 1, Weight: 1,
		TokenIDs: held.TokenIDs, LossMask: held.LossMask, OldLogProbs: held.OldLogProbs, Advantages: make([]float32, len(held.TokenIDs)),
	}
	for t, m := range held.LossMask {
		if m != 0 {
			row.Advantages[t] = float32(recalibrated)
		}
	}
	if history == 0 {
		return []schema.BatchRow{row}
	}
	return turnsOf(row, history)
}

// turnsOf cuts a trajectory without masked turns into the rows of its turns: each ends where the policy
// stopped writing.
func turnsOf(whole schema.BatchRow, history int) []schema.BatchRow {
	var rows []schema.BatchRow
	head, begin, ends := slices.Index(whole.LossMask, 1), 0, []int{}
	for t, m := range whole.LossMask {
		end := t + 1
		if m == 0 || end < len(whole.LossMask) && whole.LossMask[end] == 1 {
			continue
		}
		w := rollout.WindowAfter(head, ends, history)
		row, length := whole, w.Len(end)
		row.Turn, row.TokenIDs, row.LossMask = new(int32(len(rows))), w.Tokens(whole.TokenIDs, end), own(whole.LossMask, begin, end, length)
		row.OldLogProbs, row.Advantages = own(whole.OldLogProbs, begin, end, length), own(whole.Advantages, begin, end, length)
		rows, ends, begin = append(rows, row), append(ends, end), end
	}
	return rows
}

// count fills in the result and the manifest's statistics.
func (b *buffer) count(w *draft, out *wire.Buffered) {
	out.Size, out.Stored, out.Baselines = len(b.state.Entries), b.replayed.Stored, len(b.state.Baselines)
	out.Consumed, out.Imitated = b.replayed.Consumed, b.replayed.Imitated
	out.P50, _ = b.state.Baselines.P50()
	for _, v := range b.replayed.Verdicts {
		if v.Fate == resample.Imitated {
			out.Recalibrated += v.Recalibrated / float64(out.Imitated)
		}
	}
	w.timing.Rows = int64(out.Size)
	w.stats = map[string]float64{
		statBuffered: float64(out.Size), statStored: float64(out.Stored), statBaselines: float64(out.Baselines), statP50: out.P50, statConsumed: 0,
	}
	if out.Consumed {
		w.stats[statConsumed], w.stats[statImitated], w.stats[statReplayed] = 1, float64(out.Imitated), out.Recalibrated
	}
}

func (a UpdateReplayBuffer) commit(ctx context.Context, w *draft, b *buffer) error {
	rows := make([]schema.ReplayRow, len(b.state.Entries))
	for i, e := range b.state.Entries {
		rows[i] = b.held[e.TrajectoryID]
	}
	if err := put(ctx, w, rows); err != nil {
		return err
	}
	baselines := make([]schema.BaselineRow, len(b.state.Baselines))
	for i, e := range b.state.Baselines {
		baselines[i] = schema.BaselineRow{GroupID: e.Group, Collected: int32(e.Step), Mean: e.Mean}
	}
	if err := put(ctx, w, baselines); err != nil {
		return err
	}
	if !b.replayed.Consumed {
		return nil
	}
	schema.SortBatch(b.batch)
	data, err := schema.EncodeReplayBatch(b.batch)
	if err != nil {
		return err
	}
	return w.shard(ctx, schema.ReplayBatch, data, len(b.batch))
}

// readReplayBatch returns what a step learns from again; nothing where its buffer was not full.
func (d *Deps) readReplayBatch(ctx context.Context, m schema.Manifest) ([]schema.BatchRow, error) {
	rows, _, err := d.batchOf(ctx, m, schema.ReplayBatch, schema.DecodeReplayBatch)
	return rows, err
}

// bufferOf returns the stage buffer's manifest that a finished step's head names; the zero ref where it
// names none, which is the empty buffer.
func (d *Deps) bufferOf(ctx context.Context, run, step string) (schema.Ref, error) {
	head, _, found, err := d.Record.Head(ctx, run, step)
	if err != nil || !found || len(head.Stages[wire.StageBuffer]) == 0 {
		return schema.Ref{}, err
	}
	return head.Stages[wire.StageBuffer][0], nil
}
