package verify

import (
	"context"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// tables says where each table is read.
var tables = stages.Visible()

// checkCopies checks that each compaction copies manifests that its step's head names, and that its merged copies hold
// the rows of their shards.
func checkCopies(ctx context.Context, v *evidence) error {
	for _, m := range v.ordered() {
		if m.Stage != schema.StageCompact {
			continue
		}
		for _, s := range m.Shards {
			if err := checkCopy(ctx, v, m, s); err != nil {
				return err
			}
		}
	}
	return nil
}

func checkCopy(ctx context.Context, v *evidence, m committed, s schema.ShardInfo) error {
	shards, ok := v.copied(m, s.Table)
	if !ok {
		return nil
	}
	pieces := make([][]byte, 0, len(shards)+1)
	for _, one := range append(shards, s) {
		if _, sound := v.shards[one.Key]; !sound {
			return nil // what is wrong with it is a fault already
		}
		data, err := v.get(ctx, one.Key, m.ManifestKey())
		if err != nil || data == nil {
			return err
		}
		pieces = append(pieces, data)
	}
	if err := schema.CheckMerged(s.Table, pieces[len(shards)], pieces[:len(shards)]); err != nil {
		v.fault(FaultRows, s.Key, "is no merged copy: %v", err)
	}
	return nil
}

// copied returns the shards of a table that a compaction copies; ok is false if a fault says why it cannot be told.
func (v *evidence) copied(m committed, table schema.Table) (shards []schema.ShardInfo, ok bool) {
	step, _ := m.StepNumber()
	_, inHeads := tables.InHeads[table]
	for _, ref := range tables.Holding(table, m.Inputs) {
		p, err := schema.ParseManifestKey(ref.Key)
		if err != nil || p.Step != m.Step || inHeads && !slices.Contains(v.heads[step].Stages[p.Stage], ref) {
			v.fault(FaultLineage, m.ManifestKey(), "copies table %s of %s, which the head of its step does not name",
				table, ref.Key)
			return nil, false
		}
		source, there := v.manifests[ref.Key]
		if !there {
			return nil, false // the check of inputs says so
		}
		shards = append(shards, source.ShardsOf(table)...)
		for _, part := range source.Parts {
			p, there := v.manifests[part.Key]
			if !there {
				return nil, false
			}
			shards = append(shards, p.ShardsOf(table)...)
		}
	}
	return shards, true
}
