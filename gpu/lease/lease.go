package lease

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// Lease is the right to use some devices. Its methods are safe for concurrent use. The holder must release it.
type Lease struct {
	pool    *Pool
	devices []device.Device
	locks   []*os.File

	sound    context.Context // ends, with the cause, when a device fails
	fail     context.CancelCauseFunc
	released sync.Once
	xids     []int // under the pool's lock
}

// Devices returns the devices in the state of the time when they were leased, in the order of the inventory.
func (l *Lease) Devices() []device.Device { return slices.Clone(l.devices) }

// UUIDs returns the UUIDs of the devices, e.g. for CUDA_VISIBLE_DEVICES.
func (l *Lease) UUIDs() []string {
	var out []string
	for _, d := range l.devices {
		out = append(out, d.UUID)
	}
	return out
}

// Failed is closed when one of the devices fails. Work on the devices must then stop. Err says how the device failed.
func (l *Lease) Failed() <-chan struct{} { return l.sound.Done() }

// Err is nil until a device fails. Then it is a *device.Error, whose FailureKind names the failure.
func (l *Lease) Err() error { return context.Cause(l.sound) }

// Xids returns the codes that the devices have reported since they were leased, in order. The list includes codes that
// do not fail a device, so that an engine's error can name everything that the driver saw.
func (l *Lease) Xids() []int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return slices.Clone(l.xids)
}

// Context returns a context for work on the devices. It ends with its parent, or when a device fails; its cause is then
// Err.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(l.sound, func() { cancel(l.Err()) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Release releases the devices. The caller must have ended its work on them. A second call does nothing.
func (l *Lease) Release() {
	l.released.Do(func() {
		l.pool.forget(l)
		for _, f := range l.locks {
			f.Close()
		}
		l.pool.wakeWaiters()
	})
}

func (l *Lease) holds(uuid string) bool {
	return slices.ContainsFunc(l.devices, func(d device.Device) bool { return d.UUID == uuid })
}
