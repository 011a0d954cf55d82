package learn

import (
	"context"
	"fmt"
	"maps"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/offers"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// firstStep is the step whose trajectories the policy before training samples.
const firstStep = 1

// addProperties puts what the world offers before training into the statistics of step 1. A run without a policy of its
// own, such as an import, has none. The rows of turns are read shard by shard. The manifests of trajectories become
// inputs; each leads to the turns behind it.
func (a Resample) addProperties(ctx context.Context, w *stage.Draft, in api.StageInput,
	rewards []schema.RewardRow) error {
	if in.Step != firstStep || len(rewards) == 0 {
		return nil
	}
	_, _, trained, err := a.Record.Lookup(ctx, schema.AtInit(in.Run, schema.StageWarmStart))
	if err != nil || !trained {
		return err
	}
	scored := in.Made.One(schema.StageReward)
	assembled, err := a.MadeFrom(ctx, scored, schema.StageAssemble)
	if err != nil {
		return err
	}
	if !readsStage(w.Manifest.Inputs, schema.StageAssemble) { // a filter may have named them
		w.Manifest.Inputs = append(w.Manifest.Inputs, assembled...)
	}
	left := make(map[string]schema.RewardRow, len(rewards))
	for _, r := range rewards {
		left[r.TrajectoryID] = r
	}
	var all diagnose.Properties
	for _, shard := range assembled {
		if err := a.addShard(ctx, &all, shard, left); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		return fmt.Errorf("%w: %s scores %d trajectories that have no turns", commit.ErrDamaged, scored.Key,
			len(left))
	}
	report, err := all.Report()
	if err != nil {
		return err
	}
	if w.Stats == nil {
		w.Stats = map[string]float64{}
	}
	maps.Copy(w.Stats, offers.Stats(report))
	return nil
}

// addShard adds the trajectories of one shard that have a reward, and removes these from left.
func (a Resample) addShard(ctx context.Context, all *diagnose.Properties, assembled schema.Ref,
	left map[string]schema.RewardRow) error {
	chain, err := a.ShardChain(ctx, assembled)
	if err != nil {
		return err
	}
	turns, err := readColumns[schema.TurnRow](ctx, a.Records, offers.TurnColumns, chain...)
	if err != nil {
		return err
	}
	acts, err := readColumns[schema.TransitionRow](ctx, a.Records, offers.TransitionColumns, chain...)
	if err != nil {
		return err
	}
	branches, err := record.BranchesIn(ctx, a.Records, chain)
	if err != nil {
		return err
	}
	turns, acts = schema.Inherit(turns, branches), schema.Inherit(acts, branches)
	var scored []schema.RewardRow
	for _, t := range turns {
		if r, there := left[t.TrajectoryID]; there {
			scored = append(scored, r)
			delete(left, t.TrajectoryID)
		}
	}
	return all.Add(offers.Join(scored, turns, acts)...)
}

// readsStage reports whether an input was made by the stage.
func readsStage(inputs []schema.Ref, stage string) bool {
	for _, ref := range inputs {
		if record.IsOfStage(ref, stage) {
			return true
		}
	}
	return false
}

// readColumns is read for a stage that needs few columns of a table.
func readColumns[R schema.Row](ctx context.Context, r record.Records, columns []string, refs ...schema.Ref) ([]R,
	error) {
	manifests, err := r.Manifests(ctx, refs)
	if err != nil {
		return nil, err
	}
	shards, err := r.Record.Shards(ctx, schema.TableOf[R](), manifests...)
	if err != nil {
		return nil, err
	}
	var out []R
	for _, s := range shards {
		data, err := r.Record.ReadShard(ctx, s)
		if err != nil {
			return nil, err
		}
		rows, err := schema.DecodeColumns[R](data, columns...)
		if err != nil {
			return nil, fmt.Errorf("read shard %s: %w", s.Key, err)
		}
		out = append(out, rows...)
	}
	return out, nil
}
