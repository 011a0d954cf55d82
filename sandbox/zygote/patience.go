package zygote

import (
	"errors"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// errTurnOver: the call had to give way and has no verdict; it is to begin anew.
var errTurnOver = errors.New("the call has given way to others")

// patience looks after one call until it has its verdict, so that it holds up others for a turn at most. Its
// goroutine alone touches it, but for what is atomic. A nil one lets the call be.
type patience struct {
	lanes *lanes
	aside func() // told once
	long  bool   // it has left the quick lane
	begun int    // how often it has begun anew; set while it is in no lane

	// Of the attempt:
	spent  atomic.Int64 // ns of its time, as the lanes count it
	gone   atomic.Bool  // another has its place
	nudge  atomic.Pointer[nudge]
	since  time.Time // when it came into the long lane
	frozen time.Time // since when it stands still; zero while it runs
}

const (
	// Of every cycle, a call in the long lane runs a share while the quick lane is full.
	cycle      = 2 * time.Second
	cycleShare = 50 * time.Millisecond
	// graceShare is what a call has first: most that are late are nearly done.
	graceShare = 10 * time.Millisecond
)

// begin starts an attempt on a zygote.
func (p *patience) begin(z *process) {
	p.spent.Store(0)
	p.nudge.Store(z.nudge)
	p.since, p.frozen = time.Now(), time.Time{}
}

// may is how much a call in the long lane has before it gives way: nothing the first time, when all it has had is its
// turn; then ten turns, a hundred, and at last as much as it likes, so that each comes to its end.
func (p *patience) may() int64 {
	const certain = 3
	switch {
	case p.begun == 0:
		return 0
	case p.begun >= certain:
		return math.MaxInt64
	}
	return int64(math.Pow10(p.begun)) * int64(shortestTurn)
}

// giveWay tells the call's goroutine that another has its place. The lanes call it.
func (p *patience) giveWay() {
	p.gone.Store(true)
	p.nudge.Load().give()
}

// look is asked now and then while a call runs and says when to ask again.
func (p *patience) look(r *running) time.Duration {
	if p == nil {
		return lookTime
	}
	if p.long {
		return p.share(r)
	}
	turn := p.lanes.turn()
	if had := time.Since(r.began); had < turn {
		return max(turn-had, time.Millisecond)
	}
	spent := r.spent()
	p.spent.Store(int64(spent))
	if spent < turn {
		return max(turn-spent, time.Millisecond)
	}
	if p.lanes.waiting.Load() == 0 {
		return lookTime
	}
	p.lanes.took(spent)
	p.long = true
	p.since = time.Now()
	if !p.lanes.step(p) {
		p.gone.Store(true)
		r.kill(causeTurn)
	}
	p.lanes.leave()
	p.aside()
	return graceShare
}

// share has a call in the long lane run or stand still. While it stands still its wall limit does not come nearer.
func (p *patience) share(r *running) time.Duration {
	if p.gone.Load() {
		r.kill(causeTurn)
		return lookTime
	}
	p.spent.Store(int64(r.spent()))
	had := time.Since(p.since)
	runs := had < graceShare || had%cycle > cycle-cycleShare || !p.lanes.full()
	switch {
	case runs && !p.frozen.IsZero():
		r.signal(unix.SIGCONT)
		r.until = r.until.Add(time.Since(p.frozen))
		p.frozen = time.Time{}
	case !runs && p.frozen.IsZero() && r.signal(unix.SIGSTOP):
		p.frozen = time.Now()
	}
	if had < graceShare {
		return graceShare - had
	}
	return lookTime
}

// standsStill reports whether a call's wall limit has to wait.
func (p *patience) standsStill() bool { return p != nil && !p.frozen.IsZero() }

// leave gives back the place that the call has.
func (p *patience) leave() {
	if p.long {
		p.lanes.leaveLong(p)
	} else {
		p.lanes.leave()
	}
}

// ended is told the CPU time of an attempt that is over.
func (p *patience) ended(r *running, cpu time.Duration) {
	if p != nil && !p.long {
		p.lanes.took(max(cpu, time.Since(r.began)/idleCost))
	}
}

// spent is what a call has had so far: processor time, or a part of the time that it kept its place.
func (r *running) spent() time.Duration {
	spent := time.Since(r.began) / idleCost
	for _, pid := range r.leaders() {
		if cpu, err := clockOf(pid).read(); err == nil {
			spent = max(spent, cpu)
		}
	}
	return spent
}

// signal sends a signal to what the call has started, less what has left its process group, and reports whether
// there was anything.
func (r *running) signal(number unix.Signal) bool {
	leaders := r.leaders()
	for _, pid := range leaders {
		_ = unix.Kill(-pid, number) // it may have ended
	}
	return len(leaders) > 0
}

// leaders are the zygote's children that lead process groups: its call, and not before this is a group of its own.
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
