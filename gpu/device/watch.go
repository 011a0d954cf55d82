package device

import (
	"context"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/NVIDIA/go-nvml/pkg/nvml"
)

// WatchOptions configure a watch.
type WatchOptions struct {
	// Every is the time between polls; 0 means 5 s.
	Every time.Duration
	// Limit is how long the driver may take to answer for one device; 0 means 10 s. After that the device counts as
	// hung.
	Limit time.Duration
	// Clock is the source of time; nil means the machine's clock.
	Clock Clock
	// Log receives errors of the watch itself; nil means the default logger. Changes go only to subscribers.
	Log *slog.Logger
}

// Watch tracks the states of a host's devices. Its methods are safe for concurrent use. It does not see devices that
// the driver lists later. The caller must close it.
type Watch struct {
	host    *Host
	o       WatchOptions
	ctx     context.Context // ends with Close
	cancel  context.CancelFunc
	running sync.WaitGroup
	closed  sync.Once
	polling chan struct{} // holds one token while a poll runs
	kick    chan struct{} // asks for a poll at once

	emitting sync.Mutex // changes reach the subscribers one after the other

	mu          sync.Mutex
	devices     []*watched
	topology    *Topology
	subscribers map[int]func(Change)
	nextID      int
	eventFaults int
}

// watched is one device of a watch.
type watched struct {
	index  int
	uuid   string // "" of one that was lost when the watch began
	last   Device
	health Health
	since  time.Time
	judge  *judge
	polled []Reason
	events []Reason // stay until the watch ends
	xids   map[int]int
	handle nvml.Device // that events name; nil without events
	stuck  chan Device // a read that has not come back
}

// Change is a change that a watch noticed on a device.
type Change struct {
	At       time.Time
	Index    int
	UUID     string
	From, To Health
	// Xid is the code of the reported Xid, or 0 if something else changed. An Xid without consequence is reported too;
	// From and To are then equal.
	Xid int
}

// Failure is the error of work on the device, if it has failed.
func (c Change) Failure() *Error {
	if c.To.State != Failed {
		return nil
	}
	return &Error{Index: c.Index, UUID: c.UUID, Reason: c.To.Reasons[0]}
}

// Status is the state of a device as its watch knows it.
type Status struct {
	Device
	Health Health      `json:"health"`
	Since  time.Time   `json:"since"`  // of the state
	Events bool        `json:"events"` // the driver tells of its Xids as they happen
	Xids   map[int]int `json:"xids,omitempty"`
	// ThrottledThermal is the share of the last ten minutes in which heat lowered the clocks. The next field is the
	// share for a power brake.
	ThrottledThermal float64 `json:"throttled_thermal"`
	ThrottledPower   float64 `json:"throttled_power"`
}

// Failure is the error of work on the device, if it has failed.
func (s Status) Failure() *Error { return Change{Index: s.Index, UUID: s.UUID, To: s.Health}.Failure() }

// Watch starts a watch and polls once. It fails only if the devices cannot be listed.
func (h *Host) Watch(o WatchOptions) (*Watch, error) {
	if o.Every == 0 {
		o.Every = 5 * time.Second
	}
	if o.Limit == 0 {
		o.Limit = 10 * time.Second
	}
	if o.Clock == nil {
		o.Clock = SystemClock{}
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	all, err := h.find()
	if err != nil {
		return nil, err
	}
	w := &Watch{
		host: h, o: o, polling: make(chan struct{}, 1), kick: make(chan struct{}, 1),
		subscribers: map[int]func(Change){},
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	var devices []Device
	for _, f := range all {
		d := &watched{index: f.index, uuid: f.uuid, judge: newJudge(), xids: map[int]int{}, since: o.Clock.Now()}
		d.last, d.health = Device{Index: f.index, UUID: f.uuid}, Health{State: Healthy}
		w.devices = append(w.devices, d)
		w.poll(d)
		devices = append(devices, d.last)
	}
	w.topology = h.topology(all, devices)
	w.running.Add(2)
	set, handles := w.register()
	go w.listen(set, handles)
	go w.keepPolling()
	return w, nil
}

// Close ends the watch after the current poll. A second call does nothing.
func (w *Watch) Close() error {
	w.cancel()
	w.running.Wait()
	w.closed.Do(func() { w.polling <- struct{}{} }) // and keeps the token: nothing polls any more
	return nil
}

// Host returns the watched host.
func (w *Watch) Host() *Host { return w.host }

// Clock returns the watch's source of time.
func (w *Watch) Clock() Clock { return w.o.Clock }

// Status returns the status of every device, in the order of the inventory.
func (w *Watch) Status() []Status {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]Status, 0, len(w.devices))
	for _, d := range w.devices {
		s := Status{Device: d.last, Health: d.health, Since: d.since, Events: d.handle != nil, Xids: maps.Clone(d.xids)}
		s.ThrottledThermal, _ = d.judge.thermal.share()
		s.ThrottledPower, _ = d.judge.power.share()
		out = append(out, s)
	}
	return out
}

// Topology returns how the devices were connected when the watch started, or nil with fewer than two devices.
func (w *Watch) Topology() *Topology { return w.topology }

// EventFaults counts how often waiting for events failed.
func (w *Watch) EventFaults() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.eventFaults
}

// Subscribe calls f with every later change, one at a time, until stop is called. f must not wait for the watch.
func (w *Watch) Subscribe(f func(Change)) (stop func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	id := w.nextID
	w.nextID++
	w.subscribers[id] = f
	return func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		delete(w.subscribers, id)
	}
}

// change alters the reasons of a device. It calls the subscribers if the state or the reasons changed, or if there was
// an Xid.
func (w *Watch) change(d *watched, xid int, alter func()) {
	w.emitting.Lock()
	defer w.emitting.Unlock()
	w.mu.Lock()
	alter()
	now := healthOf(slices.Concat(d.polled, d.events))
	c := Change{At: w.o.Clock.Now(), Index: d.last.Index, UUID: d.last.UUID, From: d.health, To: now, Xid: xid}
	if c.From.State != c.To.State {
		d.since = c.At
	}
	d.health = c.To
	told := xid != 0 || !sameKinds(c.From, c.To)
	var all []func(Change)
	for _, id := range slices.Sorted(maps.Keys(w.subscribers)) {
		all = append(all, w.subscribers[id])
	}
	w.mu.Unlock()
	if !told {
		return
	}
	for _, f := range all {
		f(c)
	}
}

// sameKinds compares two healths without the details, because their numbers change from poll to poll.
func sameKinds(a, b Health) bool {
	return slices.EqualFunc(
		a.Reasons, b.Reasons, func(a, b Reason) bool { return a.Kind == b.Kind && a.State == b.State },
	)
}
