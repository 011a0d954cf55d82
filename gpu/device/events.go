package device

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// wanted are the events that are listened to, where a device has them. All but Xids and double-bit errors only ask for
// a poll, which finds out what has happened.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeDramRetirementFailure |
	nvml.EventTypeFatalPoisonError | nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// waitLimit is how long one wait for an event lasts; a watch ends no later than that.
const waitLimit = time.Second

// Bounds of the pause before a broken event set is replaced.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 30 * time.Second
)

// register makes an event set with every device that has events; nil if none has, or none can be made.
func (w *Watch) register() (nvml.EventSet, map[nvml.Device]*watched) {
	if !w.host.has("nvmlEventSetCreate") {
		return nil, nil
	}
	set, ret := w.host.lib.EventSetCreate()
	if ret != nvml.SUCCESS {
		w.o.Log.Warn("gpu: no event set", "error", nvml.Return.Error(ret))
		return nil, nil
	}
	handles := map[nvml.Device]*watched{}
	for _, d := range w.devices {
		handle := w.registerOne(d, set)
		if handle != nil {
			handles[handle] = d
		}
		w.mu.Lock()
		d.handle = handle
		w.mu.Unlock()
	}
	if len(handles) == 0 {
		set.Free()
		return nil, nil
	}
	return set, handles
}

// registerOne is nil for a device without events.
func (w *Watch) registerOne(d *watched, set nvml.EventSet) nvml.Device {
	handle, ret := w.host.lib.DeviceGetHandleByUUID(d.uuid)
	if ret != nvml.SUCCESS {
		return nil
	}
	supported := read(newProbe(w.host, handle), "", "nvmlDeviceGetSupportedEventTypes", handle.GetSupportedEventTypes)
	if supported.Value&wanted == 0 || !w.host.has("nvmlDeviceRegisterEvents") {
		return nil
	}
	if ret := handle.RegisterEvents(supported.Value&wanted, set); ret != nvml.SUCCESS {
		w.o.Log.Warn("gpu: events not registered; it is polled alone", "device", d.index, "error", nvml.Return.Error(ret))
		return nil
	}
	return handle
}

// listen waits for events until the watch ends. A set that breaks is replaced: the new one is made before the old one is
// freed, so that as little as possible is missed, and everything is polled. Devices without events may have them after
// a reset, so that is tried again too.
func (w *Watch) listen(set nvml.EventSet, handles map[nvml.Device]*watched) {
	defer w.running.Done()
	pause := retryFirst
	for {
		if set != nil {
			broke := w.drain(set, handles, &pause)
			if broke == nvml.SUCCESS { // the watch has ended
				set.Free()
				return
			}
			w.o.Log.Warn("gpu: waiting for events broke", "error", nvml.Return.Error(broke))
			w.mu.Lock()
			w.eventFaults++
			w.mu.Unlock()
			w.soon()
		}
		select {
		case <-w.ctx.Done():
			if set != nil {
				set.Free()
			}
			return
		case <-w.o.Clock.After(pause):
		}
		pause = min(2*pause, retryMost)
		old := set
		if set, handles = w.register(); old != nil {
			old.Free()
		}
	}
}

// drain takes events until the set breaks, and says how; SUCCESS once the watch ends.
func (w *Watch) drain(set nvml.EventSet, handles map[nvml.Device]*watched, pause *time.Duration) nvml.Return {
	for w.ctx.Err() == nil {
		data, ret := set.Wait(uint32(waitLimit.Milliseconds()))
		switch ret {
		case nvml.ERROR_TIMEOUT:
			*pause = retryFirst
		case nvml.SUCCESS:
			*pause = retryFirst
			w.event(data, handles)
		default:
			return ret
		}
	}
	return nvml.SUCCESS
}

// event draws the consequence of one event.
func (w *Watch) event(data nvml.EventData, handles map[nvml.Device]*watched) {
	defer w.soon()
	d := w.whose(data.Device, handles)
	if d == nil {
		w.o.Log.Warn("gpu: event of an unknown device", "type", data.EventType, "data", data.EventData)
		return
	}
	switch data.EventType {
	case nvml.EventTypeXidCriticalError:
		code := int(data.EventData)
		row := XidOf(code)
		w.change(d, code, func() {
			d.xids[code]++
			if row.Consequence == Degrade || row.Consequence == Fail {
				d.hold(Reason{XidKind(code), State(row.Consequence), fmt.Sprintf("Xid %d, %s", code, row.Name)})
			}
		})
	case nvml.EventTypeDoubleBitEccError:
		w.change(d, 0, func() { d.hold(Reason{KindDoubleBit, Failed, "reported by the driver"}) })
	}
}

// hold keeps a reason that an event gave.
func (d *watched) hold(r Reason) {
	for _, known := range d.events {
		if known.Kind == r.Kind {
			return
		}
	}
	d.events = append(d.events, r)
}

// whose finds the device of an event, by its handle or, since that need not be the registered one, by its UUID.
func (w *Watch) whose(handle nvml.Device, handles map[nvml.Device]*watched) *watched {
	if handle == nil {
		return nil
	}
	if d := handles[handle]; d != nil {
		return d
	}
	uuid, ret := handle.GetUUID()
	if ret != nvml.SUCCESS {
		return nil
	}
	for _, d := range w.devices {
		if d.uuid == uuid {
			return d
		}
	}
	return nil
}
