package lease

import (
	"context"
	"os"
	"slices"
	"sync"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// Lease is the right to some devices. Its methods are safe for concurrent use. Release it, always.
type Lease struct {
	pool    *Pool
	devices []device.Device
	locks   []*os.File

	sound    context.Context // ends, with the cause, when a device fails
	fail     context.CancelCauseFunc
	released sync.Once
	xids     []int // under the pool's lock
}

// Devices are the devices as they were when they were leased, in the order of the inventory.
func (l *Lease) Devices() []device.Device { return slices.Clone(l.devices) }

// UUIDs name the devices, e.g. for CUDA_VISIBLE_DEVICES.
func (l *Lease) UUIDs() []string {
	var out []string
	for _, d := range l.devices {
		out = append(out, d.UUID)
	}
	return out
}

// Failed is closed when one of the devices fails; work on them must then stop. Err says how.
func (l *Lease) Failed() <-chan struct{} { return l.sound.Done() }

// Err is nil until a device fails, and then a *device.Error, whose FailureKind names it.
func (l *Lease) Err() error { return context.Cause(l.sound) }

// Xids are the codes that the devices have reported since they were leased, in their order: also those that hold nothing
// against a device, so that an engine's failure can be told together with what the driver saw.
func (l *Lease) Xids() []int {
	l.pool.mu.Lock()
	defer l.pool.mu.Unlock()
	return slices.Clone(l.xids)
}

// Context is a context for work on the devices: it ends with its parent, or with Err as its cause when a device fails.
func (l *Lease) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(l.sound, func() { cancel(l.Err()) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Release gives the devices back. Whoever used them has ended what ran there before. Again it does nothing.
func (l *Lease) Release() {
	l.released.Do(func() {
		l.pool.forget(l)
		for _, f := range l.locks {
			f.Close()
		}
		l.pool.wake()
	})
}

func (l *Lease) holds(uuid string) bool {
	return slices.ContainsFunc(l.devices, func(d device.Device) bool { return d.UUID == uuid })
}
