package zygote

import (
	"runtime"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// watch holds the state of a session's timer, which checks the limits of CPU and wall time. The timer keeps running
// between cells, because threads that a cell left running may use the CPU. So most cells find it already set for an
// early enough time and need not set it.
type watch struct {
	timer  *time.Timer
	next   time.Time     // when the timer checks next
	base   time.Duration // CPU time at the end of the last cell
	limits sandbox.Limits
	began  time.Time     // start of the running cell, without time in which it could not run; zero between cells
	looked time.Time     // when the running cell was last looked at
	stood  time.Duration // how long the running cell could not run
}

const (
	idleLook = time.Second            // how often a session is checked between cells
	cellLook = 250 * time.Millisecond // how often it is checked for stopped processes while a cell runs
)

// beginCell starts the clocks of a cell. CPU time used since the end of the last cell counts towards this one.
func (s *session) beginCell(limits sandbox.Limits) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	w.began, w.limits, w.stood = time.Now(), limits, 0
	w.looked = w.began
	if soon := w.began.Add(w.firstLook()); w.timer == nil || w.next.IsZero() || w.next.After(soon) {
		s.lookAt(soon)
	}
}

// firstLook is the earliest time at which a limit can be reached, given that threads can use CPU time on every
// processor.
func (w *watch) firstLook() time.Duration {
	return max(time.Millisecond, min(cellLook, w.limits.Wall, w.cpuLimit()/time.Duration(runtime.NumCPU())))
}

func (w *watch) cpuLimit() time.Duration { return wholeSeconds(w.limits.CPU) }

// lookAt sets the timer. It needs the lock.
func (s *session) lookAt(at time.Time) {
	s.watch.next = at
	if s.watch.timer == nil {
		s.watch.timer = time.AfterFunc(time.Until(at), s.look)
		return
	}
	s.watch.timer.Reset(time.Until(at))
}

// look kills the session if a limit is reached. Otherwise it sets the timer for the next time at which one can be.
func (s *session) look() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cause != causeNone || s.over != nil {
		return
	}
	w, now := &s.watch, time.Now()
	used, err := s.clock.read()
	left := w.cpuLimit() - (used - w.base)
	wait := idleLook
	if !w.began.IsZero() {
		s.excuse(now)
	}
	switch {
	case err != nil:
		return // it has ended; the goroutine that reads its socket notices
	case left <= 0:
		s.cause = causeCPU
	case !w.began.IsZero() && now.Sub(w.began) >= w.limits.Wall:
		s.cause = causeWall
	case !w.began.IsZero():
		wait = min(cellLook, w.limits.Wall-now.Sub(w.began), left/time.Duration(runtime.NumCPU()))
	}
	if s.cause != causeNone {
		s.signal()
		return
	}
	s.lookAt(now.Add(max(wait, 5*time.Millisecond)))
}

// excuse moves the start of the running cell if the cell could not run since the last look, as excuse in stops.go does
// for calls. A cell that something outside stops for too long is killed; without a cause, that loses the session.
func (s *session) excuse(now time.Time) {
	w := &s.watch
	if now.Sub(w.next) > standstill || s.isStopped() {
		gap := now.Sub(w.looked)
		w.began = w.began.Add(gap)
		if w.stood += gap; w.stood > mostStopped {
			s.signal()
		}
	}
	w.looked = now
}

// endCell stops the clocks and returns what the cell used. A limit that was reached before the answer came counts, even
// if the timer has not noticed it.
func (s *session) endCell() (wall, cpu time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &s.watch
	wall, w.began = time.Since(w.began), time.Time{}
	used, err := s.clock.read()
	if err != nil {
		return wall, 0
	}
	cpu, w.base = used-w.base, used
	if cpu >= w.cpuLimit() && s.cause == causeNone {
		s.cause = causeCPU
		s.signal()
	}
	return wall, cpu
}

// stop stops the timer. It needs the session's lock.
func (w *watch) stop() {
	if w.timer != nil {
		w.timer.Stop()
	}
}
