package activities

import (
	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// metered runs body and keeps what its engine used meanwhile in the stage's timing.
func metered(engine policy.Engine, timing *wire.Timing, body func() error) error {
	meter, ok := engine.(policy.Meter)
	if !ok {
		return body()
	}
	before := meter.Usage()
	err := body()
	timing.Device = deviceUse(before, meter.Usage())
	return err
}

// deviceUse is what was used between two readings.
func deviceUse(before, after policy.Usage) *wire.DeviceUse {
	use := &wire.DeviceUse{PeakBytes: after.PeakBytes, Utilisation: after.Busy}
	seconds := after.TrainSeconds - before.TrainSeconds
	if seconds <= 0 {
		return use
	}
	use.TokensPerSec = new(float64(after.Trained-before.Trained) / seconds)
	if after.PeakFlops > 0 {
		use.MFU = new((after.Flops - before.Flops) / seconds / after.PeakFlops)
	}
	return use
}
