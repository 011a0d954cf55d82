package learn

import (
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

// Statistics of the stage buffer, and of an update after it.
const (
	StatStored    = "stored"    // rows added
	StatConsumed  = "consumed"  // 1 if the buffer was full, else 0
	StatImitated  = "imitated"  // rows in the replay batch
	StatP50       = "p50"       // median of the baselines
	StatBaselines = "baselines" // groups in the queue
	StatReplayed  = "replayed"  // mean Ã of the replay batch
	StatBuffered  = "buffered"  // rows in the buffer after the step
)

// Rows are the rows in the buffer after the step.
func (b *Buffer) Rows() []schema.ReplayRow {
	rows := make([]schema.ReplayRow, len(b.state.Entries))
	for i, e := range b.state.Entries {
		rows[i] = b.held[heldRow{e.TrajectoryID, e.Turn}]
	}
	return rows
}

// Baselines are the groups in the queue after the step.
func (b *Buffer) Baselines() []schema.BaselineRow {
	rows := make([]schema.BaselineRow, len(b.state.Baselines))
	for i, e := range b.state.Baselines {
		rows[i] = schema.BaselineRow{GroupID: e.Group, Collected: int32(e.Step), Mean: e.Mean}
	}
	return rows
}

// ReplayBatch are the rows that the step's update learns from again. consumed is false if the buffer was not full.
func (b *Buffer) ReplayBatch() (rows []schema.BatchRow, consumed bool) {
	return b.batch, b.replayed.Consumed
}

// Counts describes a buffer after a step.
type Counts struct {
	// Size is how many rows the buffer holds, Stored how many of them the step added, and Baselines how many
	// groups the queue holds.
	Size, Stored, Baselines int
	// Consumed means that the buffer was full, and Imitated counts the rows in the replay batch.
	Consumed bool
	Imitated int
	// P50 is the median of the baselines, and Recalibrated the mean advantage Ã of the imitated rows.
	P50, Recalibrated float64
}

// Count counts the buffer after the step.
func (b *Buffer) Count() Counts {
	c := Counts{
		Size: len(b.state.Entries), Stored: b.replayed.Stored, Baselines: len(b.state.Baselines),
		Consumed: b.replayed.Consumed, Imitated: b.replayed.Imitated,
	}
	c.P50, _ = b.state.Baselines.P50()
	for _, v := range b.replayed.Verdicts {
		if v.Fate == resample.Imitated {
			c.Recalibrated += v.Recalibrated / float64(c.Imitated)
		}
	}
	return c
}

// Stats are the counts as statistics of a manifest.
func (c Counts) Stats() map[string]float64 {
	out := map[string]float64{
		StatBuffered: float64(c.Size), StatStored: float64(c.Stored), StatBaselines: float64(c.Baselines),
		StatP50: c.P50, StatConsumed: 0,
	}
	if c.Consumed {
		out[StatConsumed], out[StatImitated], out[StatReplayed] = 1, float64(c.Imitated), c.Recalibrated
	}
	return out
}
