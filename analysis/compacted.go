package analysis

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/schema"
)

// readCompactions reads the compactions of the run's steps, by step.
func (v *Visible) readCompactions(ctx context.Context) (map[string]schema.Manifest, error) {
	r := v.record
	if r.originals {
		return nil, nil
	}
	steps := map[schema.Place]bool{}
	for _, of := range v.lineage {
		listed, err := r.objects.List(ctx, schema.CompactPrefix(of.Run))
		if err != nil {
			return nil, fmt.Errorf("list merged copies of run %s: %w", of.Run, err)
		}
		for _, o := range listed {
			p, err := schema.ParseDataKey(o.Key)
			if n, ok := stepOf(p.Step); err == nil && ok && n <= of.Step {
				steps[owned(v.lineage, schema.At(v.run, n, schema.StageCompact))] = true
			}
		}
	}
	found, _, err := r.lookups(ctx, slices.Collect(maps.Keys(steps)))
	out := map[string]schema.Manifest{}
	for _, m := range found {
		if m.Stage != "" {
			out[m.Step] = m
		}
	}
	return out, err
}

// copy returns the merged copy of a table if it copies exactly the shards of the manifests with these keys, which are
// all of one step and stage.
func (v *Visible) copy(table schema.Table, manifests []string) (s Shard, ok bool, err error) {
	compactions, err := v.compactions()
	if err != nil || len(manifests) == 0 {
		return Shard{}, false, err
	}
	source, err := schema.ParseManifestKey(manifests[0])
	if err != nil {
		return Shard{}, false, err
	}
	m := compactions[source.Step]
	shards := m.ShardsOf(table)
	copied := keysOf(tablesRead.Holding(table, m.Inputs))
	if len(shards) != 1 || !slices.Equal(copied, slices.Sorted(slices.Values(manifests))) {
		return Shard{}, false, nil
	}
	return Shard{ShardInfo: shards[0], Run: m.Run, Step: placed(m), Gen: source.Gen}, true, nil
}

// keysOf returns the keys of refs, sorted. A manifest that has been committed never changes, so keys identify it.
func keysOf(refs []schema.Ref) []string {
	keys := make([]string, len(refs))
	for i, r := range refs {
		keys[i] = r.Key
	}
	slices.Sort(keys)
	return keys
}

// copyOrShards returns what holds a table behind a step's manifests: its merged copy, or else its shards.
func (v *Visible) copyOrShards(ctx context.Context, table schema.Table, refs []schema.Ref) ([]Shard, error) {
	if s, ok, err := v.copy(table, keysOf(refs)); ok || err != nil {
		return ofRun(v.run, []Shard{s}), err
	}
	manifests, err := v.record.manifests(ctx, refs)
	return ofRun(v.run, shardsOf(table, manifests)), err
}

// shardsWithoutHead is Shards for a table that is visible without a head.
func (v *Visible) shardsWithoutHead(ctx context.Context, table schema.Table) ([]Shard, error) {
	places, err := v.placesWithoutHead(table)
	if err != nil {
		return nil, err
	}
	byStep := map[string][]string{}
	for _, p := range places {
		byStep[p.Step] = append(byStep[p.Step], p.ManifestKey())
	}
	var out []Shard
	for _, keys := range byStep {
		if s, ok, err := v.copy(table, keys); err != nil {
			return nil, err
		} else if ok {
			out = append(out, s)
			places = slices.DeleteFunc(places, func(p schema.Place) bool {
				return slices.Contains(keys, p.ManifestKey())
			})
		}
	}
	manifests, err := v.record.at(ctx, places)
	out = append(out, shardsOf(table, manifests)...)
	slices.SortStableFunc(out, func(a, b Shard) int { return cmp.Compare(a.Step, b.Step) })
	return ofRun(v.run, out), err
}

// eachStep returns what copyOrShards returns for each of several steps.
func (v *Visible) eachStep(ctx context.Context, table schema.Table, steps [][]schema.Ref) ([]Shard, error) {
	found := make([][]Shard, len(steps))
	err := rescue.Each(ctx, fetches, len(steps), func(ctx context.Context, i int) (err error) {
		found[i], err = v.copyOrShards(ctx, table, steps[i])
		return err
	})
	return slices.Concat(found...), err
}
