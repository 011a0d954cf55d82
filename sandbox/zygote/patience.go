package zygote

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// errTurnOver: the call has had its turn, and there is no place for it in the long lane yet.
var errTurnOver = errors.New("the call's turn in the quick lane is over")

// patience looks after one call while it runs, so that it holds up others for a turn at most. A nil one lets the
// call be.
type patience struct {
	place *place
	aside func() // told once
	long  bool   // in the long lane, or on the way there

	// Of the attempt:
	low      bool          // the processes that there are have low priority
	credited time.Duration // how much its wall limit does not count
}

// look is asked now and then while a call runs and says when to ask again.
func (w *patience) look(r *running) time.Duration {
	if w == nil {
		return lookTime
	}
	if w.long {
		if !w.low {
			w.low = true
			lowerPriority(r.zygote.command.Process.Pid)
		}
		return lookTime
	}
	spent := time.Since(r.began)
	if turn := w.place.lanes.turn(); spent < turn {
		return turn - spent
	}
	if w.place.lanes.waiting.Load() == 0 {
		return lookTime
	}
	w.place.lanes.took(spent)
	w.long = true
	if w.place.step() {
		w.low = true
		lowerPriority(r.zygote.command.Process.Pid)
	} else {
		r.kill(causeTurn)
	}
	w.aside()
	return lookTime
}

// ended is told when an attempt is over.
func (w *patience) ended(spent time.Duration) {
	if w != nil && !w.long {
		w.place.lanes.took(spent)
	}
}

// mostWaited bounds, in wall limits, how much waiting for a processor is not counted.
const mostWaited = 9

// waited is asked when a call's wall limit is over and reports whether it was put off: what a call of low priority
// waited for a processor is not its own time.
func (w *patience) waited(r *running) bool {
	if w == nil || !w.long {
		return false
	}
	waited := min(runDelay(r.zygote.command.Process.Pid), mostWaited*r.limits.Wall)
	if waited <= w.credited {
		return false
	}
	r.until = r.until.Add(waited - w.credited)
	w.credited = waited
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
