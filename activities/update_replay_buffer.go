package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/replaybuffer"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// UpdateReplayBuffer takes the replay buffer and the queue of baselines through one step and commits their new state.
// If the buffer was full, the stage also commits the step's replay batch.
type UpdateReplayBuffer struct{ *Deps }

// Execute commits the tables replay and baselines and, if the buffer was full, replay_batch.
func (a UpdateReplayBuffer) Execute(ctx context.Context, e *Env, in api.StageInput) (api.Buffered, error) {
	out := api.Buffered{}
	s := spec{scope: in.Scope, stage: schema.StageBuffer, turn: -1, shard: -1}
	if in.Before != (schema.Ref{}) {
		s.inputs = append(s.inputs, in.Before)
	}
	s.inputs = append(s.inputs, in.Made.One(schema.StageReward), in.Made.One(schema.StageAdvantage))
	err := execute(ctx, a.Deps, e, s, &out, &out.Done, func(ctx context.Context, w *draft) error {
		recipe, err := a.Recipes.recipe(ctx, in.Scope)
		if err != nil {
			return err
		}
		if recipe.Replay == nil {
			return refuse(api.FailRefused, "the recipe has no section replay, so there is no buffer")
		}
		b, err := a.advance(ctx, in, recipe)
		if err != nil {
			return err
		}
		c := b.Count()
		out.Size, out.Stored, out.Baselines, out.P50 = c.Size, c.Stored, c.Baselines, c.P50
		out.Consumed, out.Imitated, out.Recalibrated = c.Consumed, c.Imitated, c.Recalibrated
		w.timing.Rows, w.stats = int64(c.Size), c.Stats()
		return a.commit(ctx, w, b)
	})
	return out, err
}

// advance takes the buffer that the previous step left through the step.
func (a UpdateReplayBuffer) advance(ctx context.Context, in api.StageInput,
	recipe *recipes.Recipe) (*replaybuffer.Buffer, error) {
	var rows []schema.ReplayRow
	var baselines []schema.BaselineRow
	var err error
	if in.Before != (schema.Ref{}) {
		if rows, err = read[schema.ReplayRow](ctx, a.records, in.Before); err != nil {
			return nil, err
		}
		if baselines, err = read[schema.BaselineRow](ctx, a.records, in.Before); err != nil {
			return nil, err
		}
	}
	rewards, err := read[schema.RewardRow](ctx, a.records, in.Made.One(schema.StageReward))
	if err != nil {
		return nil, err
	}
	trained, err := a.readBatch(ctx, in.Made.One(schema.StageAdvantage))
	if err != nil {
		return nil, err
	}
	b := replaybuffer.Open(batch.History(recipe), rows, baselines)
	return b, b.Advance(replaybuffer.Rules(recipe.Replay), in.Step, rewards, trained)
}

func (a UpdateReplayBuffer) commit(ctx context.Context, w *draft, b *replaybuffer.Buffer) error {
	if err := put(ctx, w, b.Rows()); err != nil {
		return err
	}
	if err := put(ctx, w, b.Baselines()); err != nil {
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
	return w.shard(ctx, schema.ReplayBatch, data, len(rows))
}
