package analysis

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// Deeds reads who did what to a run, or with schema.NoRun to no single run, in the order in which it was asked for.
func (r *Record) Deeds(ctx context.Context, run string) ([]schema.Deed, error) {
	listed, err := r.objects.List(ctx, schema.DeedsPrefix+run+"/")
	if err != nil {
		return nil, fmt.Errorf("list the deeds of run %s: %w", run, err)
	}
	out := []schema.Deed{}
	for _, o := range listed {
		text, err := r.objects.Get(ctx, o.Key)
		if err != nil {
			return nil, fmt.Errorf("read the deeds of run %s: %w", run, err)
		}
		var d schema.Deed
		if err := json.Unmarshal(text, &d); err != nil {
			return nil, fmt.Errorf("%w: %s: %w", commit.ErrDamaged, o.Key, err)
		}
		out = append(out, d)
	}
	return out, nil
}
