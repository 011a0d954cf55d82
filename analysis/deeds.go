package analysis

import (
	"context"

	"github.com/ropewalk/ropewalk/schema"
)

// Deeds reads who did what to a run, or with schema.NoRun to no single run, in the order in which it was asked for.
func (r *Record) Deeds(ctx context.Context, run string) ([]schema.Deed, error) {
	prefix := schema.DeedsPrefix + run + "/"
	names, err := r.names(ctx, prefix)
	if err != nil {
		return nil, err
	}
	out := []schema.Deed{}
	for _, name := range names {
		d, found, err := readJSON[schema.Deed](ctx, r, prefix+name+".json")
		if err != nil {
			return nil, err
		}
		if found {
			out = append(out, d)
		}
	}
	return out, nil
}
