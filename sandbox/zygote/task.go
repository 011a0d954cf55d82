package zygote

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// errPreempted: another call took the place of this one, which has no verdict and has to start again.
var errPreempted = errors.New("the call was preempted")

// task is one call as the scheduler sees it, until the call has its verdict. It makes sure that the call delays others
// by at most one time slice. Only the call's goroutine uses it, except for the atomic fields. A nil task never pauses
// its call.
type task struct {
	scheduler  *scheduler
	aside      func() // called once, when the call is set aside
	background bool   // the call is in the background
	restarts   int    // how often the call has started again; set while it has no place

	// State of the current attempt:
	used       atomic.Int64 // time used, in ns, as the scheduler counts it
	evicted    atomic.Bool  // another call has taken its place
	wakeup     atomic.Pointer[wakeup]
	since      time.Time // when it moved to the background
	pausedAt   time.Time // when it was told to pause; zero while it runs
	allPaused  bool      // all its processes are known to be paused
	unpausable bool      // it has processes that cannot be paused, so it keeps running
}

const (
	// While the foreground is full, a call in the background runs for cycleShare of every cycle.
	cycle      = 2 * time.Second
	cycleShare = 50 * time.Millisecond
	// graceShare is how long a call runs first in the background: most calls that are set aside are nearly done.
	graceShare = 10 * time.Millisecond
)

// begin starts an attempt on a zygote.
func (p *task) begin(z *process) {
	p.used.Store(0)
	p.wakeup.Store(z.wakeup)
	p.since, p.pausedAt, p.allPaused, p.unpausable = time.Now(), time.Time{}, false, false
}

// allowance is how much time a call in the background may use before it can lose its place: none on the first attempt,
// after the time slice that it has had; then ten time slices, then a hundred. After that there is no bound, so every
// call finishes.
func (p *task) allowance() int64 {
	const certain = 3
	switch {
	case p.restarts == 0:
		return 0
	case p.restarts >= certain:
		return math.MaxInt64
	}
	return int64(math.Pow10(p.restarts)) * int64(shortestSlice)
}

// evict tells the call's goroutine that another call has taken its place. The scheduler calls it.
func (p *task) evict() {
	p.evicted.Store(true)
	p.wakeup.Load().signal()
}

// check is called at intervals while a call runs, and returns when to call it again.
func (p *task) check(r *running) time.Duration {
	if p == nil {
		return lookTime
	}
	if p.background {
		return p.schedule(r)
	}
	slice := p.scheduler.slice()
	if had := time.Since(r.began); had < slice {
		return max(slice-had, time.Millisecond)
	}
	used := r.used()
	p.used.Store(int64(used))
	if used < slice {
		return max(slice-used, time.Millisecond)
	}
	if p.scheduler.waiting.Load() == 0 {
		return lookTime
	}
	p.scheduler.record(used)
	p.background = true
	p.since = time.Now()
	if !p.scheduler.setAside(p) {
		p.evicted.Store(true)
		r.kill(causePreempted)
	}
	p.scheduler.leave()
	p.aside()
	return graceShare
}

// schedule pauses or resumes a call in the background. While the call is paused its wall limit is suspended.
func (p *task) schedule(r *running) time.Duration {
	if p.evicted.Load() {
		r.kill(causePreempted)
		return lookTime
	}
	p.used.Store(int64(r.used()))
	had := time.Since(p.since)
	runs := had < graceShare || had%cycle > cycle-cycleShare || !p.scheduler.full()
	switch {
	case !p.pausedAt.IsZero():
		if p.confirm(r); runs && p.paused() {
			p.resume(r)
		}
	case !runs && !p.unpausable:
		p.pause(r)
	}
	if had < graceShare {
		return graceShare - had
	}
	return lookTime
}

// pause pauses the call: all its processes by the control group, or its one process by a signal.
func (p *task) pause(r *running) {
	told := false
	if group := r.zygote.freezer(); group != "" {
		told = group.freeze() == nil
	} else {
		told = r.signal(unix.SIGSTOP)
	}
	if told {
		p.pausedAt, p.allPaused = time.Now(), false
		p.confirm(r)
	}
}

// confirm finds out whether the whole call is paused. A group takes a moment, since each of its processes has to be
// scheduled once to freeze, though none runs any of its code. If a call has no group and cannot be paused completely,
// it is resumed and keeps running under its wall limit.
func (p *task) confirm(r *running) {
	if group := r.zygote.freezer(); group != "" {
		if p.allPaused {
			return
		}
		frozen, err := group.frozen()
		p.allPaused = err == nil && frozen
		if p.allPaused && group.holdsKilled() {
			p.pauseBySignal(r, group)
		}
	} else if p.allPaused = r.alone(); !p.allPaused {
		p.unpausable = true
		p.resume(r)
	}
}

// pauseBySignal pauses a frozen call by signals instead, all its processes at once: each of them receives the signal
// before it can run any code.
func (p *task) pauseBySignal(r *running, group freezer) {
	p.allPaused = group.signal(unix.SIGSTOP, r.zygote.command.Process.Pid) == nil
	if group.thaw() != nil {
		r.zygote.kill() // otherwise it would stay paused forever
	}
}

// resume lets the call run again. If the whole call was paused, its wall limit moves by the length of the pause.
func (p *task) resume(r *running) {
	if group := r.zygote.freezer(); group == "" {
		r.signal(unix.SIGCONT)
	} else if group.thaw() != nil || p.allPaused && group.holdsKilled() &&
		group.signal(unix.SIGCONT, r.zygote.command.Process.Pid) != nil {
		r.zygote.kill() // otherwise it would stay paused forever
	}
	if p.allPaused {
		r.until = r.until.Add(time.Since(p.pausedAt))
	}
	p.pausedAt = time.Time{}
}

// paused reports whether the call's wall limit is suspended.
func (p *task) paused() bool { return p != nil && !p.pausedAt.IsZero() }

// leave returns the place that the call has.
func (p *task) leave() {
	if p.background {
		p.scheduler.leaveBackground(p)
	} else {
		p.scheduler.leave()
	}
}

// ended records the CPU time of an attempt that has ended. A call can end while it is told to pause; its zygote, which
// is in the same group, must run again for the next call.
func (p *task) ended(r *running, cpu time.Duration) {
	if p.paused() {
		r.zygote.thaw()
	}
	if p != nil && !p.background {
		p.scheduler.record(max(cpu, time.Since(r.began)/idleCost))
	}
}

// used returns the time that a call has used so far: processor time, or a part of the time that it has had its place.
func (r *running) used() time.Duration {
	used := time.Since(r.began) / idleCost
	for _, pid := range r.leaders() {
		if cpu, err := clockOf(pid).read(); err == nil {
			used = max(used, cpu)
		}
	}
	return used
}

// signal sends a signal to the process groups that the call has started. It does not reach processes that have left
// their group. It reports whether there was a group.
func (r *running) signal(number unix.Signal) bool {
	leaders := r.leaders()
	for _, pid := range leaders {
		_ = unix.Kill(-pid, number) // fails if it has ended
	}
	return len(leaders) > 0
}

// leaders are the zygote's children that lead process groups: the call, once it has become a group of its own.
func (r *running) leaders() []int {
	pids, err := childrenOf(r.zygote.command.Process.Pid)
	if err != nil {
		return nil
	}
	return slices.DeleteFunc(pids, func(pid int) bool {
		group, err := unix.Getpgid(pid)
		return err != nil || group != pid
	})
}
