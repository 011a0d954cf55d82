package verify

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/internal/offers"
	"github.com/ropewalk/ropewalk/rl/diagnose"
	"github.com/ropewalk/ropewalk/schema"
)

// checkProperties compares what a run's world offers before training, as the first step has committed it, with the
// step's rows.
func checkProperties(ctx context.Context, v *evidence) error {
	h, done := v.heads[1]
	if !done || !v.manifests.loaded(h.Stages[schema.StageResample]) {
		return nil
	}
	key := h.Stages[schema.StageResample][0].Key
	said, stated := offers.Read(v.manifests[key].Stats)
	if !stated {
		return nil
	}
	got, known, err := v.properties(ctx, h)
	if err != nil || !known {
		return err
	}
	want, have := offers.Stats(got), offers.Stats(said)
	for _, name := range slices.Sorted(maps.Keys(want)) {
		checkFigure(v, key, "statistic "+name, have[name], want[name])
	}
	for _, name := range slices.Sorted(maps.Keys(have)) {
		if _, follows := want[name]; !follows {
			v.fault(FaultFigures, key, "states the statistic %s, for which its rows have no data", name)
		}
	}
	return nil
}

// properties computes the properties from the rows that a head names. known is false if rows cannot be read, which is
// a fault already.
func (v *evidence) properties(ctx context.Context, h schema.Head) (out diagnose.PropertyReport, known bool, err error) {
	rewards, known, err := rowsBehind[schema.RewardRow](ctx, v, h.Stages[schema.StageReward])
	if err != nil || !known {
		return out, false, err
	}
	turns, known, err := rowsBehind[schema.TurnRow](ctx, v, h.Stages[schema.StageRollout], offers.TurnColumns...)
	if err != nil || !known {
		return out, false, err
	}
	acts, known, err := rowsBehind[schema.TransitionRow](ctx, v, h.Stages[schema.StageSandbox],
		offers.TransitionColumns...)
	if err != nil || !known {
		return out, false, err
	}
	branches, known, err := rowsBehind[schema.BranchRow](ctx, v, h.Stages[schema.StageRollout])
	if err != nil || !known {
		return out, false, err
	}
	turns, acts = schema.Inherit(turns, branches), schema.Inherit(acts, branches)
	var all diagnose.Properties
	if all.Add(offers.Join(rewards, turns, acts)...) != nil {
		return out, false, nil
	}
	out, err = all.Report()
	return out, err == nil, err
}

// rowsBehind returns the rows of a table behind the manifests of a stage. With columns, only those are read.
func rowsBehind[R schema.Row](ctx context.Context, v *evidence, stage []schema.Ref, columns ...string) (rows []R,
	known bool, err error) {
	if len(stage) > 0 && !v.manifests.loaded(stage) {
		return nil, false, nil
	}
	for _, m := range v.manifests.behindStage(stage) {
		for _, s := range m.ShardsOf(schema.TableOf[R]()) {
			if _, sound := v.shards[s.Key]; !sound {
				return nil, false, nil
			}
			data, err := v.get(ctx, s.Key, m.ManifestKey())
			if err != nil || data == nil {
				return nil, false, err
			}
			var some []R
			if len(columns) > 0 {
				some, err = schema.DecodeColumns[R](data, columns...)
			} else {
				some, err = schema.Decode[R](data)
			}
			if err != nil {
				return nil, false, fmt.Errorf("read shard %s: %w", s.Key, err)
			}
			rows = append(rows, some...)
		}
	}
	return rows, true, nil
}

// behindStage lists the manifests of a stage with their parts.
func (a manifests) behindStage(stage []schema.Ref) (out []schema.Manifest) {
	for _, ref := range stage {
		m := a[ref.Key]
		out = append(out, m.Manifest)
		for _, part := range m.Parts {
			out = append(out, a[part.Key].Manifest)
		}
	}
	return out
}
