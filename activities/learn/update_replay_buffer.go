package learn

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// UpdateReplayBuffer takes the replay buffer and the queue of baselines through one step and commits their new state.
// If the buffer was full, the stage also commits the step's replay batch.
type UpdateReplayBuffer struct{ *stage.Worker }

// Execute commits the tables replay and baselines and, if the buffer was full, replay_batch.
func (a UpdateReplayBuffer) Execute(ctx context.Context, e *stage.Env, in api.StageInput) (out api.Buffered,
	err error) {
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageBuffer, Turn: -1, Shard: -1}
	if in.Before != (schema.Ref{}) {
		s.Inputs = append(s.Inputs, in.Before)
	}
	s.Inputs = append(s.Inputs, in.Made.One(schema.StageReward), in.Made.One(schema.StageAdvantage))
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		if w.Recipe.Replay == nil {
			return refusal.Unusablef("the w.Recipe has no section replay, so there is no buffer")
		}
		b, err := a.advance(ctx, in, w.Recipe)
		if err != nil {
			return err
		}
		c := b.Count()
		out.Size, out.Stored, out.Baselines, out.P50 = c.Size, c.Stored, c.Baselines, c.P50
		out.Consumed, out.Imitated, out.Recalibrated = c.Consumed, c.Imitated, c.Recalibrated
		w.Timing.Rows, w.Stats = int64(c.Size), c.Stats()
		return a.commit(ctx, w, b)
	})
	return out, err
}

// advance takes the buffer that the previous step left through the step.
func (a UpdateReplayBuffer) advance(ctx context.Context, in api.StageInput, recipe *recipes.Recipe) (*Buffer, error) {
	var rows []schema.ReplayRow
	var baselines []schema.BaselineRow
	var err error
	if in.Before != (schema.Ref{}) {
		if rows, err = record.Read[schema.ReplayRow](ctx, a.Records, in.Before); err != nil {
			return nil, err
		}
		if baselines, err = record.Read[schema.BaselineRow](ctx, a.Records, in.Before); err != nil {
			return nil, err
		}
	}
	rewards, err := record.Read[schema.RewardRow](ctx, a.Records, in.Made.One(schema.StageReward))
	if err != nil {
		return nil, err
	}
	trained, err := a.ReadBatch(ctx, in.Made.One(schema.StageAdvantage))
	if err != nil {
		return nil, err
	}
	b := OpenBuffer(rows, baselines)
	return b, b.Advance(ReplayRules(recipe.Replay), in.Step, rewards, trained)
}

func (a UpdateReplayBuffer) commit(ctx context.Context, w *stage.Draft, b *Buffer) error {
	if err := stage.Put(ctx, w, b.Rows()); err != nil {
		return err
	}
	if err := stage.Put(ctx, w, b.Baselines()); err != nil {
		return err
	}
	rows, consumed := b.ReplayBatch()
	if !consumed {
		return nil
	}
	schema.SortBatch(rows)
	data, err := schema.EncodeReplayBatch(rows)
	if err != nil {
		return err
	}
	return w.Shard(ctx, schema.ReplayBatch, data, len(rows))
}

// BufferOf returns the stage buffer's manifest that a finished step's head names. It returns the zero ref, which is
// the empty buffer, if the head names none.
func BufferOf(ctx context.Context, r record.Records, run, step string) (schema.Ref, error) {
	head, _, found, err := r.Record.Head(ctx, run, step)
	if err != nil || !found || len(head.Stages[schema.StageBuffer]) == 0 {
		return schema.Ref{}, err
	}
	return head.Stages[schema.StageBuffer][0], nil
}
