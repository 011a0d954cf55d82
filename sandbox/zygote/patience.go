package zygote

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
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
	spent    atomic.Int64 // ns of its time, as the lanes count it
	gone     atomic.Bool  // another has its place
	nudge    atomic.Pointer[nudge]
	low      bool          // the processes that there are have low priority
	credited time.Duration // how much its wall limit does not count
}

// begin starts an attempt on a zygote.
func (p *patience) begin(z *process) {
	p.spent.Store(0)
	p.nudge.Store(z.nudge)
	p.low, p.credited = false, 0
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
		if p.gone.Load() {
			r.kill(causeTurn)
		} else {
			p.lower(r)
			p.spent.Store(int64(r.spent()))
		}
		return lookTime
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
	if p.lanes.step(p) {
		p.lower(r)
	} else {
		p.gone.Store(true)
		r.kill(causeTurn)
	}
	p.lanes.leave()
	p.aside()
	return lookTime
}

func (p *patience) lower(r *running) {
	if !p.low {
		p.low = true
		lowerPriority(r.zygote.command.Process.Pid)
	}
}

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
	pids, err := childrenOf(r.zygote.command.Process.Pid)
	if err != nil {
		return spent
	}
	for _, pid := range pids {
		if cpu, err := clockOf(pid).read(); err == nil {
			spent = max(spent, cpu)
		}
	}
	return spent
}

// mostWaited bounds, in wall limits, how much waiting for a processor is not counted.
const mostWaited = 9

// waited is asked when a call's wall limit is over and reports whether it was put off: what a call of low priority
// waited for a processor is not its own time.
func (p *patience) waited(r *running) bool {
	if p == nil || !p.long {
		return false
	}
	waited := min(runDelay(r.zygote.command.Process.Pid), mostWaited*r.limits.Wall)
	if waited <= p.credited {
		return false
	}
	r.until = r.until.Add(waited - p.credited)
	p.credited = waited
	return true
}

// lowerPriority lowers that of all that a zygote's call has started. A call is the leader of a session, for which the
// kernel may keep a priority of its own (sched(7), autogroup). Where neither can be set the call stays as it is.
func lowerPriority(zygote int) {
	pids, err := childrenOf(zygote)
	if err != nil {
		return
	}
	for _, pid := range pids {
		_ = unix.Setpriority(unix.PRIO_PGRP, pid, lowPriority)
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(lowPriority)), 0)
	}
}

// runDelay is how long a zygote's call has been ready to run without a processor: the largest of its threads'.
func runDelay(zygote int) (most time.Duration) {
	pids, err := childrenOf(zygote)
	if err != nil {
		return 0
	}
	for _, pid := range pids {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
		if err != nil {
			continue
		}
		for _, file := range threads {
			text, err := os.ReadFile(file)
			if err != nil {
				continue // it has ended
			}
			if fields := strings.Fields(string(text)); len(fields) > 1 { // time on a processor, time waiting for one, in ns
				if ns, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					most = max(most, time.Duration(ns))
				}
			}
		}
	}
	return most
}
