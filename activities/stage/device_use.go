package stage

import (
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
)

// Metered runs body. Heartbeats, and later the stage's timing, report how the trainer uses its devices.
func Metered(trainer policy.Trainer, w *Draft, body func() error) error {
	meter, ok := trainer.(policy.Meter)
	if !ok {
		return body()
	}
	before := meter.Usage()
	use := func() *api.DeviceUse { return deviceUse(before, meter.Usage()) }
	w.Progress.use.Store(&use)
	defer w.Progress.use.Store(nil)
	err := body()
	w.Timing.Device = use()
	return err
}

// deviceUse is the use between two readings.
func deviceUse(before, after policy.Usage) *api.DeviceUse {
	use := &api.DeviceUse{PeakBytes: after.PeakBytes, Utilisation: after.Busy}
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
