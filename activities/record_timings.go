package activities

import (
	"context"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/schema"
)

// RecordTimings keeps the measured times of a step's activities in the timings table, which no
// stage reads.
type RecordTimings struct{ *Deps }

// Execute commits one row per activity execution.
func (a RecordTimings) Execute(ctx context.Context, in wire.RecordTimingsInput) (wire.Done, error) {
	out := wire.Done{}
	timing := wire.Timing{Stage: wire.StageTimings, Shard: -1, Turn: -1}
	err := tracked(ctx, &timing, func(ctx context.Context, _ *progress) error {
		rows := make([]schema.TimingRow, len(in.Timings))
		for i, t := range in.Timings {
			rows[i] = schema.TimingRow{
				Stage: t.Stage, Shard: int32(t.Shard), Turn: int32(t.Turn), Kind: "activity", Call: -1,
				StartMicros: t.Start, EndMicros: t.End, QueueSeconds: t.Queue, CPUSeconds: t.CPU,
				Attempt: int32(t.Attempt), Host: t.Host, Rows: t.Rows, Tokens: t.Tokens,
			}
			if d := t.Device; d != nil {
				rows[i].DeviceUtilisation, rows[i].MFU, rows[i].TrainTokensPerS = d.Utilisation, d.MFU, d.TokensPerSec
				if d.PeakBytes > 0 {
					rows[i].DevicePeakBytes = &d.PeakBytes
				}
			}
		}
		return a.recordTimings(ctx, spec{scope: in.Scope, stage: "timings_" + in.Part, turn: -1, shard: -1}, rows)
	})
	out.Timing = timing
	return out, err
}
