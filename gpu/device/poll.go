package device

import (
	"context"
	"errors"
	"fmt"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// keepPolling polls at the watch's interval, and at once when an event asks for it.
func (w *Watch) keepPolling() {
	defer w.running.Done()
	for {
		select {
		case <-w.ctx.Done():
			return
		case <-w.o.Clock.After(w.o.Every):
		case <-w.kick:
		}
		_ = w.Poll(w.ctx) // fails only when the watch ends
	}
}

// requestPoll requests a poll without waiting for it.
func (w *Watch) requestPoll() {
	select {
	case w.kick <- struct{}{}:
	default:
	}
}

// ErrEnded says that the watch is closed.
var ErrEnded = errors.New("the watch over the devices has ended")

// Poll reads every device now. The error is ErrEnded or the context's. If the context ends, the poll continues without
// the caller.
func (w *Watch) Poll(ctx context.Context) error {
	select {
	case w.polling <- struct{}{}:
	case <-w.ctx.Done():
		return ErrEnded
	case <-ctx.Done():
		return ctx.Err()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { <-w.polling }()
		for _, d := range w.devices {
			if w.ctx.Err() == nil {
				w.poll(d)
			}
		}
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// poll reads one device and replaces its polled reasons.
func (w *Watch) poll(d *watched) {
	now, ok := w.readWithin(d)
	w.change(d, 0, func() {
		if !ok {
			d.polled = []Reason{{KindHung, Failed, fmt.Sprintf("the driver did not answer for %s", w.o.Limit)}}
			return
		}
		if fault := now.Faults[noHandle]; now.Lost != "" || fault != "" { // what else is known of it stays
			d.last.Lost, d.last.Faults = now.Lost, now.Faults
		} else {
			d.last = now
		}
		d.polled = d.judge.polled(d.last, w.o.Clock.Now())
	})
}

// readWithin reads a device. It returns false if the driver takes too long. Such a call cannot be cancelled, so the
// device is not read again until the call returns.
func (w *Watch) readWithin(d *watched) (Device, bool) {
	if d.stuck != nil {
		select {
		case now := <-d.stuck:
			d.stuck = nil
			return now, true
		default:
			return Device{}, false
		}
	}
	answer := make(chan Device, 1)
	go func() { answer <- w.host.readKnown(d.index, d.uuid) }()
	select {
	case now := <-answer:
		return now, true
	case <-w.o.Clock.After(w.o.Limit):
		d.stuck = answer
		return Device{}, false
	}
}

// noHandle is the field that is reported as unreadable if the device gives no handle.
const noHandle = "device"

// readKnown reads a device that was found before. A device that the driver no longer knows is lost.
func (h *Host) readKnown(index int, uuid string) Device {
	h.mu.Lock()
	h.reading++
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		h.reading--
		h.mu.Unlock()
	}()
	var handle nvml.Device
	var ret nvml.Return
	if uuid == "" {
		handle, ret = h.lib.DeviceGetHandleByIndex(index)
	} else {
		handle, ret = h.lib.DeviceGetHandleByUUID(uuid)
	}
	switch ret {
	case nvml.SUCCESS:
	case nvml.ERROR_GPU_IS_LOST, nvml.ERROR_RESET_REQUIRED, nvml.ERROR_NOT_FOUND, nvml.ERROR_INVALID_ARGUMENT:
		return Device{Index: index, UUID: uuid, Lost: lostReason(ret)}
	default: // perhaps for a moment
		return Device{Index: index, UUID: uuid, Faults: map[string]string{noHandle: nvml.Return.Error(ret)}}
	}
	if uuid == "" {
		uuid, _ = handle.GetUUID()
	}
	return h.read(index, uuid, handle)
}
