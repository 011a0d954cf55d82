package analysis

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/ropewalk/ropewalk/schema"
)

// ErrNoGeneration: no finished step of the run has that generation.
var ErrNoGeneration = errors.New("the run has no such generation")

// AtGeneration returns a view whose steps show the stage manifests of a generation where there are
// such, and what their heads name elsewhere; and the steps that have any. A replay commits a
// generation of some stages of a step.
func (v *Visible) AtGeneration(ctx context.Context, gen int) (*Visible, []int, error) {
	listed, err := v.record.objects.List(ctx, schema.ManifestsPrefix(v.run))
	if err != nil {
		return nil, nil, fmt.Errorf("list manifests of run %s: %w", v.run, err)
	}
	out := *v
	out.heads = slices.Clone(v.heads)
	changed := map[int]bool{} // index of a head
	for _, o := range listed {
		p, err := schema.ParseManifestKey(o.Key)
		if err != nil || p.Gen != gen || p.Shard >= 0 {
			continue
		}
		number, ok := p.StepNumber()
		i := slices.Index(v.steps, number)
		if !ok || i < 0 || out.heads[i].Stages[p.Stage] == nil {
			continue
		}
		_, ref, found, err := v.record.writer.Lookup(ctx, p)
		if err != nil {
			return nil, nil, err
		}
		if !found {
			continue
		}
		if !changed[i] {
			changed[i] = true
			out.heads[i].Stages = maps.Clone(out.heads[i].Stages)
		}
		out.heads[i].Stages[p.Stage] = replace(out.heads[i].Stages[p.Stage], p, ref)
	}
	if len(changed) == 0 {
		return nil, nil, fmt.Errorf("%w: nothing of run %s is of generation %d", ErrNoGeneration, v.run, gen)
	}
	var steps []int
	for _, i := range slices.Sorted(maps.Keys(changed)) {
		steps = append(steps, v.steps[i])
	}
	return &out, steps, nil
}

// replace puts ref in the place of the manifest of the same stage, step and turn.
func replace(refs []schema.Ref, place schema.Place, ref schema.Ref) []schema.Ref {
	out := slices.Clone(refs)
	for i, r := range out {
		if p, err := schema.ParseManifestKey(r.Key); err == nil && p.WithGen(place.Gen) == place {
			out[i] = ref
		}
	}
	return out
}
