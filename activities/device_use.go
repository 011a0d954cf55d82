package activities

import (
	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/policy"
)

// metered runs body; heartbeats tell meanwhile, and the stage's timing afterwards, what its engine uses of its devices.
func metered(engine policy.Engine, w *draft, body func() error) error {
	meter, ok := engine.(policy.Meter)
	if !ok {
		return body()
	}
	before := meter.Usage()
	use := func() *wire.DeviceUse { return deviceUse(before, meter.Usage()) }
	w.progress.use.Store(&use)
	defer w.progress.use.Store(nil)
	err := body()
	w.timing.Device = use()
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
