package learn

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/selection"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// Resample decides which trajectories enter the update, how often, and why the others do not.
type Resample struct{ *stage.Worker }

// Execute selects over all of the step's rewards. Every sampled trajectory gets a row. A trajectory that was
// excluded, by itself or with its shard, gets a row with the reason and without a reward.
func (a Resample) Execute(ctx context.Context, e *stage.Env, in api.StageInput) (out api.Resampled, err error) {
	scored := in.Made.One(schema.StageReward)
	s := stage.Spec{Scope: in.Scope, Stage: schema.StageResample, Turn: -1, Shard: -1, Inputs: []schema.Ref{scored}}
	if len(in.Excluded) > 0 {
		s.Inputs = append(s.Inputs, in.Made.One(schema.StagePrompts))
	}
	err = stage.Execute(ctx, a.Worker, e, s, &out, func(ctx context.Context, w *stage.Draft) error {
		skipped, err := a.skipped(ctx, in, w.Recipe)
		if err != nil {
			return err
		}
		rewards, err := record.Read[schema.RewardRow](ctx, a.Records, scored)
		if err != nil {
			return err
		}
		// trajectories that could not be scored
		excluded, err := record.Read[schema.SelectionRow](ctx, a.Records, scored)
		if err != nil {
			return err
		}
		excluded = append(excluded, skipped...)
		rows, err := selection.Rows(w.Recipe, rewards, excluded)
		if err != nil {
			return err
		}
		if err := a.addFacts(ctx, w, in, rows); err != nil {
			return err
		}
		selected, err := selection.Select(w.Recipe, in.Step, rows, excluded)
		if err != nil {
			return err
		}
		out.Kept, out.KeptGroups, out.Masked = selected.Kept, selected.KeptGroups, selected.Masked
		out.Dropped, out.DroppedGroups, out.Reasons = selected.Dropped, selected.DroppedGroups, selected.Reasons
		w.Timing.Rows = int64(len(selected.Rows))
		if err := noteExcluded(w, in.Excluded, len(excluded)); err != nil {
			return err
		}
		if err := a.addProperties(ctx, w, in, rewards); err != nil {
			return err
		}
		return stage.Put(ctx, w, selected.Rows)
	})
	return out, err
}

// skipped lists the trajectories of the shards that were skipped.
func (a Resample) skipped(ctx context.Context, in api.StageInput,
	recipe *recipes.Recipe) ([]schema.SelectionRow, error) {
	if len(in.Excluded) == 0 {
		return nil, nil
	}
	prompts, err := record.Read[schema.PromptRow](ctx, a.Records, in.Made.One(schema.StagePrompts))
	if err != nil {
		return nil, err
	}
	shards := make([]selection.Skipped, len(in.Excluded))
	for i, s := range in.Excluded {
		shards[i] = selection.Skipped(s)
	}
	return selection.SkippedRows(recipe, shards, prompts)
}

// addFacts fills in what the selection reads beyond rewards: the trajectories behind these and, for filters of tokens
// and the drop of mixed groups, their turns. Both become inputs of the stage.
func (a Resample) addFacts(ctx context.Context, w *stage.Draft, in api.StageInput, rows []resample.Row) error {
	if !selection.ReadsFacts(w.Recipe) {
		return nil
	}
	assembled, err := a.MadeFrom(ctx, in.Made.One(schema.StageReward), schema.StageAssemble)
	if err != nil {
		return err
	}
	w.Manifest.Inputs = append(w.Manifest.Inputs, assembled...)
	facts := selection.Facts{}
	if facts.Trajectories, err = record.Read[schema.TrajectoryRow](ctx, a.Records, assembled...); err != nil {
		return err
	}
	if selection.ReadsTurns(w.Recipe) {
		turns, err := a.turnsOf(ctx, assembled)
		if err != nil {
			return err
		}
		w.Manifest.Inputs = append(w.Manifest.Inputs, turns...)
		if facts.Turns, err = record.WholeTurns(ctx, a.Records, turns...); err != nil {
			return err
		}
	}
	return facts.Fill(rows, w.Recipe)
}

// turnsOf lists the turns of assembled shards, shard by shard.
func (a Resample) turnsOf(ctx context.Context, assembled []schema.Ref) ([]schema.Ref, error) {
	var refs []schema.Ref
	for _, ref := range assembled {
		more, err := a.TurnRefs(ctx, ref)
		if err != nil {
			return nil, err
		}
		refs = append(refs, more...)
	}
	return refs, nil
}

// noteExcluded records in the manifest how many trajectories were excluded and which shards were skipped, so that the
// stage can run again from the record alone.
func noteExcluded(w *stage.Draft, shards []api.ExcludedShard, trajectories int) error {
	if trajectories > 0 {
		w.Stats = map[string]float64{schema.StatExcluded: float64(trajectories)}
	}
	if len(shards) == 0 {
		return nil
	}
	data, err := json.Marshal(shards)
	if err != nil {
		return fmt.Errorf("encode the skipped shards: %w", err)
	}
	if w.Manifest.Note == nil {
		w.Manifest.Note = map[string]string{}
	}
	w.Manifest.Note[schema.NoteExcludedShards] = string(data)
	return nil
}

// ExcludedShards is the inverse of noteExcluded: it returns the shards that a resample stage did without.
func ExcludedShards(m schema.Manifest) ([]api.ExcludedShard, error) {
	text, ok := m.Note[schema.NoteExcludedShards]
	if !ok {
		return nil, nil
	}
	var out []api.ExcludedShard
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		return nil, fmt.Errorf("%w: %s: note %s: %w", commit.ErrDamaged, m.ManifestKey(), schema.NoteExcludedShards,
			err)
	}
	return out, nil
}
