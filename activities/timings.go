package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// Stages of measured times, each with its own place for manifests.
const (
	timingsOf    = "timings_" // common prefix; the part follows
	timingsStep  = "timings_step"
	timingsRun   = "timings_run"
	timingsCalls = "timings_calls"
)

// recordTimings commits rows of the timings table at their own place; if an earlier attempt has committed there, its
// rows stay.
func (d *Deps) recordTimings(ctx context.Context, s spec, rows []schema.TimingRow) error {
	m, err := d.manifest(ctx, s)
	if err != nil {
		return err
	}
	schema.Sort(rows)
	shard, err := commit.PutRows(ctx, d.Record, m.Place, rows)
	if err != nil {
		return err
	}
	m.Shards = append(m.Shards, shard)
	_, _, _, err = d.Record.Commit(ctx, m)
	return err
}
