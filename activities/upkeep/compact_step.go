package upkeep

import (
	"context"
	"fmt"

	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/compaction"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// CompactStep merges copies of a finished step's small shards. It runs alongside the next step. No stage reads the
// copies, so a failure changes nothing but the number of files that readers open.
type CompactStep struct{ *stage.Worker }

// Execute compacts the scope's step. A second attempt adopts what the first has committed.
func (a CompactStep) Execute(ctx context.Context, e *stage.Env, in api.CompactInput) (out api.Compacted, err error) {
	out.Timing = api.Timing{Stage: schema.StageCompact, Shard: -1, Turn: -1}
	err = a.Track(ctx, e, in.Scope, &out.Timing, func(ctx context.Context, _ *stage.Progress) error {
		r, err := compaction.Step(ctx, a.Record, in.Run, in.Step, a.Code)
		if err != nil {
			return fmt.Errorf("%s: %w", schema.StageCompact, err)
		}
		out.Tables, out.Shards, out.Timing.Rows = r.Tables, r.Shards, int64(r.Rows)
		return nil
	})
	return out, err
}
