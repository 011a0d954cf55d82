package analysis

import (
	"context"
	"fmt"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/schema"
)

// lineage lists a run and the runs that it shares steps with, the nearest first: each with the last step that the run
// has of it.
func (r *Record) lineage(ctx context.Context, prepare schema.Manifest) ([]schema.ForkPoint, error) {
	out := []schema.ForkPoint{{Run: prepare.Run, Step: schema.MaxSteps}}
	for {
		f, err := prepare.Fork()
		if err != nil || f.Run == "" {
			return out, err
		}
		f.Step = min(f.Step, out[len(out)-1].Step)
		out = append(out, f)
		if prepare, err = r.Prepared(ctx, f.Run); err != nil {
			return nil, fmt.Errorf("run %s shares steps with run %s: %w", out[0].Run, f.Run, err)
		}
	}
}

// Fork returns where the run forks off; zero if it is no fork.
func (v *Visible) Fork() schema.ForkPoint {
	if len(v.lineage) == 1 {
		return schema.ForkPoint{}
	}
	return v.lineage[1]
}

// owned returns a place of a run at the run that has made what is there: the farthest one that the run shares it with.
func owned(lineage []schema.ForkPoint, p schema.Place) schema.Place {
	for _, f := range lineage[1:] {
		if f.Shares(p) {
			p.Run = f.Run
		}
	}
	return p
}

// allPlaces lists the places of the run's manifests, and of those that it shares.
func (v *Visible) allPlaces(ctx context.Context) ([]schema.Place, error) {
	all, err := v.record.places(ctx, schema.ManifestsPrefix(v.run))
	for i := 1; i < len(v.lineage) && err == nil; i++ {
		var more []schema.Place
		more, err = v.record.places(ctx, schema.ManifestsPrefix(v.lineage[i].Run))
		all = append(all, slices.DeleteFunc(more, func(p schema.Place) bool {
			at := p
			at.Run = v.run
			return owned(v.lineage, at) != p
		})...)
	}
	return all, err
}

// alone is the run without the steps that it shares.
func (v *Visible) alone(ctx context.Context) *Visible {
	own := *v
	own.lineage, own.heads, own.steps = v.lineage[:1], nil, nil
	for i, h := range v.heads {
		if h.From == "" {
			own.heads, own.steps = append(own.heads, h), append(own.steps, v.steps[i])
		}
	}
	own.listed = sync.OnceValues(func() ([]schema.Place, error) { return own.allPlaces(ctx) })
	own.compactions = sync.OnceValues(func() (map[string]schema.Manifest, error) { return own.readCompactions(ctx) })
	return &own
}

// before returns the success of a run's first policy. That of a fork was measured where the steps were made that it
// shares.
func (r *Record) before(ctx context.Context, run string) (*float64, error) {
	place := schema.AtInit(run, schema.StageEvaluate)
	rate, found, err := r.success(ctx, place)
	if err != nil || found {
		return rate, err
	}
	prepare, _, found, err := r.writer.Lookup(ctx, schema.AtInit(run, schema.StagePrepare))
	if err != nil || !found {
		return nil, err
	}
	lineage, err := r.lineage(ctx, prepare)
	if err != nil || len(lineage) == 1 {
		return nil, err
	}
	rate, _, err = r.success(ctx, owned(lineage, place))
	return rate, err
}
