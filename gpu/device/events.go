package device

import (
	"fmt"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// wanted are the events that the watch listens to, as far as a device has them. All except Xids and double-bit errors
// only request a poll, which finds out what has happened.
const wanted = nvml.EventTypeXidCriticalError | nvml.EventTypeDoubleBitEccError | nvml.EventTypeDramRetirementFailure |
	nvml.EventTypeFatalPoisonError | nvml.EventTypeGpuUnavailableError | nvml.EventTypeGpuRecoveryAction

// waitLimit is how long one wait for an event lasts. A watch takes at most this time to end.
const waitLimit = time.Second

// Bounds of the pause before a broken event set is replaced.
const (
	retryFirst = 100 * time.Millisecond
	retryMost  = 30 * time.Second
)

// register makes an event set with every device that has events. It returns nil if no device has events or no set can
// be made.
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

// registerOne returns nil for a device without events.
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
		w.o.Log.Warn(
			"gpu: events not registered; it is polled alone", "device", d.index, "error", nvml.Return.Error(ret),
		)
		return nil
	}
	return handle
}

// listen waits for events until the watch ends. If the event set breaks, listen replaces it and polls all devices. It
// makes the new set before it frees the old one, to miss as few events as possible. A device without events may support
// them after a reset, so listen tries to register it again too.
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
			w.requestPoll()
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

// drain receives events until the set breaks and returns the error code, or SUCCESS if the watch has ended.
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

// event applies the consequence of one event.
func (w *Watch) event(data nvml.EventData, handles map[nvml.Device]*watched) {
	defer w.requestPoll()
	d := w.deviceOf(data.Device, handles)
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
			if row.Consequence == degrade || row.Consequence == fail {
				d.addReason(Reason{xidKind(code), State(row.Consequence), fmt.Sprintf("Xid %d, %s", code, row.Name)})
			}
		})
	case nvml.EventTypeDoubleBitEccError:
		w.change(d, 0, func() { d.addReason(Reason{KindDoubleBit, Failed, "reported by the driver"}) })
	}
}

// addReason keeps a reason that came from an event.
func (d *watched) addReason(r Reason) {
	for _, known := range d.events {
		if known.Kind == r.Kind {
			return
		}
	}
	d.events = append(d.events, r)
}

// deviceOf finds the device of an event by its handle. The handle may differ from the registered one, so deviceOf also
// compares the UUID.
func (w *Watch) deviceOf(handle nvml.Device, handles map[nvml.Device]*watched) *watched {
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
