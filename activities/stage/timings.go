package stage

import (
	"context"

	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/schema"
)

// Stages of measured times, each with its own place for manifests.
const (
	TimingsOf    = "timings_" // common prefix; the part follows
	TimingsStep  = "timings_step"
	TimingsRun   = "timings_run"
	TimingsCalls = "timings_calls"
)

// RecordTimings commits rows of the timings table at their own place; if an earlier attempt has committed there, its
// rows stay.
func (d *Worker) RecordTimings(ctx context.Context, s Spec, rows []schema.TimingRow) error {
	m, err := d.Manifest(ctx, s)
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
