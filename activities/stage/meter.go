package stage

import (
	"sync"

	"golang.org/x/sys/unix"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
)

// cpuMeter divides the processor time of this process among the stages that run in it: while several run, each has an
// equal part. So the parts of all stages add up to what the process used while any of them ran. Child processes, such
// as those of the sandbox and of PyTorch, are not part of it.
type cpuMeter struct {
	mu      sync.Mutex
	now     func() float64 // seconds that the process has used
	last    float64
	running map[*float64]bool
}

// meter is the process's.
var meter = cpuMeter{now: processSeconds, running: map[*float64]bool{}}

// begin begins a stage; the returned function ends it and returns its part, in seconds.
func (m *cpuMeter) begin() func() float64 {
	part := new(float64)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.divide()
	m.running[part] = true
	return func() float64 {
		m.mu.Lock()
		defer m.mu.Unlock()
		m.divide()
		delete(m.running, part)
		return *part
	}
}

// divide gives what the process has used since the last call to the stages that were running.
func (m *cpuMeter) divide() {
	now := m.now()
	for part := range m.running {
		*part += (now - m.last) / float64(len(m.running))
	}
	m.last = now
}

// processSeconds is the processor time that this process has used; it does not grow where the system does not tell.
func processSeconds() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}

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
