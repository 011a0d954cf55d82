package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// Options configure a pool.
type Options struct {
	// Dir is the folder that the host's processes share; "" means Dir().
	Dir string
	// Only, if not nil, lists the UUIDs of the devices that the pool may lease (Visible).
	Only []string
	// Log receives the pool's messages; nil means the default logger.
	Log *slog.Logger
}

// retry is the pause between two attempts of a request that waits for other processes' devices.
const retry = time.Second

// Pool leases the devices of a watch. Its methods are safe for concurrent use. Pools of other processes over the same
// folder lease the same devices. Close the pool before its watch.
type Pool struct {
	watch *device.Watch
	dir   string
	only  []string // nil: all
	log   *slog.Logger
	stop  func() // the subscription

	mu      sync.Mutex
	leases  map[*Lease]bool
	freed   chan struct{} // closed when a lease of this process is released, and then replaced
	waiting int
	taken   int
	failed  int
}

// Open makes a pool over a watch's devices.
func Open(w *device.Watch, o Options) (*Pool, error) {
	if o.Dir == "" {
		o.Dir = Dir()
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if err := makeFolder(o.Dir); err != nil {
		return nil, err
	}
	p := &Pool{watch: w, dir: o.Dir, only: o.Only, log: o.Log, leases: map[*Lease]bool{}, freed: make(chan struct{})}
	p.stop = w.Subscribe(p.onChange)
	for _, s := range w.Status() { // those that had failed before
		if failure := s.Failure(); failure != nil {
			p.mark(failure)
		}
	}
	return p, nil
}

// Close releases all open leases.
func (p *Pool) Close() error {
	p.stop()
	p.mu.Lock()
	var left []*Lease
	for l := range p.leases {
		left = append(left, l)
	}
	p.mu.Unlock()
	for _, l := range left {
		l.Release()
	}
	return nil
}

// onChange handles a change that the watch noticed.
func (p *Pool) onChange(c device.Change) {
	p.log.Warn("gpu", "device", c.Index, "uuid", c.UUID, "was", c.From.String(), "is", c.To.String(), "xid", c.Xid)
	failure := c.Failure()
	if failure != nil {
		p.mark(failure)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.leases {
		if !l.holds(c.UUID) {
			continue
		}
		if c.Xid != 0 {
			l.xids = append(l.xids, c.Xid)
		}
		if failure != nil {
			p.notifyHolder(l, failure)
		}
	}
}

// notifyHolder tells a lease's holder about a failure, once.
func (p *Pool) notifyHolder(l *Lease, failure *device.Error) {
	if l.sound.Err() == nil {
		p.failed++
		l.fail(failure)
	}
}

// mark notifies the host's other processes. If that fails, a running process still learns of the failure from its own
// watch, but a process that starts later does not.
func (p *Pool) mark(e *device.Error) {
	if e.UUID == "" || !outlastsPoll(e.Reason.Kind) {
		return
	}
	m := Mark{Kind: e.Reason.Kind, Detail: e.Reason.Detail, At: p.watch.Clock().Now().UTC(), Boot: bootID()}
	if err := writeMark(p.dir, e.UUID, m); err != nil {
		p.log.Warn("gpu lease", "error", err)
	}
}

func (p *Pool) forget(l *Lease) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.leases, l)
}

// wakeWaiters makes this process's waiting requests try again.
func (p *Pool) wakeWaiters() {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.freed)
	p.freed = make(chan struct{})
}

// Stats are the numbers of a pool for metrics.
type Stats struct {
	Leased  map[string]bool // UUIDs that this process has leased
	Waiting int             // requests
	Taken   int             // leases so far
	Failed  int             // leases of which a device failed
}

// Stats returns the present numbers.
func (p *Pool) Stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Leased: map[string]bool{}, Waiting: p.waiting, Taken: p.taken, Failed: p.failed}
	for l := range p.leases {
		for _, uuid := range l.UUIDs() {
			s.Leased[uuid] = true
		}
	}
	return s
}

// Leasable returns the devices that this pool may lease, leased or not. It bounds how many a worker can use at a time.
func (p *Pool) Leasable() []device.Status {
	var out []device.Status
	for _, s := range p.watch.Status() {
		if lack := p.lack(s, Request{}); lack.Reason == "" {
			out = append(out, s)
		}
	}
	return out
}

// Take leases devices. It waits while enough of them are sound but leased or in use. If the wait ends early, the error
// holds the NoDeviceError of the last attempt and the context's error. A request that cannot be met by waiting fails at
// once. Requests are not served in order.
func (p *Pool) Take(ctx context.Context, r Request) (*Lease, error) {
	p.mu.Lock()
	p.waiting++
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.waiting--
		p.mu.Unlock()
	}()
	var last *NoDeviceError
	for {
		p.mu.Lock()
		freed := p.freed // from before the attempt, so that no release is missed
		p.mu.Unlock()
		l, lacking, err := p.attempt(ctx, r)
		if err != nil && ctx.Err() != nil && last != nil {
			return nil, &waitedError{last, ctx.Err()}
		}
		if l != nil || err != nil {
			return l, err
		}
		last = lacking
		if lacking.usable() < r.Devices {
			return nil, lacking
		}
		select {
		case <-ctx.Done():
			return nil, &waitedError{lacking, ctx.Err()}
		case <-freed:
		case <-p.watch.Clock().After(retry):
		}
	}
}

// waitedError is the error of a request that was abandoned.
type waitedError struct {
	lacking *NoDeviceError
	ended   error
}

func (e *waitedError) Error() string   { return e.ended.Error() + " while waiting: " + e.lacking.Error() }
func (e *waitedError) Unwrap() []error { return []error{e.lacking, e.ended} }
