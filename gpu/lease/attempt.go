package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/ropewalk/ropewalk/gpu/device"
)

// attempt tries to lease devices now. If it cannot, it returns what is lacking. An error means a failure or the end of
// the context.
func (p *Pool) attempt(ctx context.Context, r Request) (*Lease, *NoDeviceError, error) {
	if r.Devices < 1 {
		return nil, nil, fmt.Errorf("lease %d devices: at least 1 has to be asked for", r.Devices)
	}
	if err := p.watch.Poll(ctx); err != nil {
		return nil, nil, fmt.Errorf("lease devices: %w", err)
	}
	choosing, err := waitLock(ctx, p.watch.Clock(), placementPath(p.dir))
	if err != nil {
		return nil, nil, fmt.Errorf("lease devices: %w", err)
	}
	defer choosing.Close()
	status := p.watch.Status()
	locks, lacking, err := p.gather(status, r)
	defer func() { // what was not chosen
		for _, f := range locks {
			f.Close()
		}
	}()
	if err != nil {
		return nil, nil, fmt.Errorf("lease devices: %w", err)
	}
	var candidates []int
	c := connections{topology: p.watch.Topology()}
	for i, s := range status {
		c.numa = append(c.numa, s.NUMA)
		if locks[i] != nil {
			candidates = append(candidates, i)
		}
	}
	if len(candidates) < r.Devices {
		return nil, lacking, nil
	}
	l := &Lease{pool: p}
	l.sound, l.fail = context.WithCancelCause(context.Background())
	for _, i := range place(candidates, r.Devices, c) {
		l.devices, l.locks = append(l.devices, status[i].Device), append(l.locks, locks[i])
		delete(locks, i)
	}
	p.keep(l)
	return l, nil, nil
}

// keep registers a lease. It reports a device that failed after it was checked. The watch reports later failures.
func (p *Pool) keep(l *Lease) {
	p.mu.Lock()
	p.leases[l] = true
	p.taken++
	p.mu.Unlock()
	for _, s := range p.watch.Status() {
		if failure := s.Failure(); failure != nil && l.holds(s.UUID) {
			p.mu.Lock()
			p.notifyHolder(l, failure)
			p.mu.Unlock()
		}
	}
}

// gather locks every device that the request could use, by position, and returns what the other devices lack.
func (p *Pool) gather(status []device.Status, r Request) (map[int]*os.File, *NoDeviceError, error) {
	locks := map[int]*os.File{}
	lacking := &NoDeviceError{Request: r}
	for i, s := range status {
		lack := p.lack(s, r)
		if lack.Reason == "" {
			f, err := tryLock(lockPath(p.dir, s.UUID))
			switch {
			case errors.Is(err, errHeld):
				lack.Reason, lack.Passing = leasedBy(holder(lockPath(p.dir, s.UUID))), true
			case err != nil:
				return locks, nil, err
			default:
				locks[i] = f
			}
		}
		lacking.Lacks = append(lacking.Lacks, lack)
	}
	return locks, lacking, nil
}

// lack says why a request cannot have a device, apart from the device's lock.
func (p *Pool) lack(s device.Status, r Request) Lack {
	l := Lack{Index: s.Index, UUID: s.UUID}
	switch {
	case p.only != nil && !slices.Contains(p.only, s.UUID):
		l.Reason = "not given to this process"
	// The device was lost when the watch began. It may have come back, but it is not fully watched.
	case s.UUID == "":
		l.Reason = cmp.Or(s.Lost, "was lost when this process started")
	case len(r.Only) > 0 && !slices.Contains(r.Only, s.UUID):
		l.Reason = "not among those asked for"
	case s.Health.State != device.Healthy:
		l.Reason = s.Health.String()
	case s.MIG.Enabled.Value:
		l.Reason = "cut into MIG instances"
	case s.Memory.Total.OK && s.Memory.Total.Value < r.Memory:
		l.Reason = fmt.Sprintf("has %s of memory", gib(s.Memory.Total.Value))
	case s.Memory.Free.OK && s.Memory.Free.Value < r.Memory:
		l.Reason, l.Passing = fmt.Sprintf(
			"%s of %s are free", gib(s.Memory.Free.Value), gib(s.Memory.Total.Value),
		), true
	}
	if l.Reason != "" {
		return l
	}
	switch mark, err := readMark(p.dir, s.UUID); {
	case err != nil: // doubtful, and only this device's matter
		l.Reason = err.Error()
	case mark != nil:
		l.Reason = fmt.Sprintf("marked as failed (%s)", mark)
	}
	return l
}

func leasedBy(pid int) string {
	if pid == 0 {
		return "leased"
	}
	return fmt.Sprintf("leased by process %d", pid)
}
