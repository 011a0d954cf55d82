package service

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// answers holds what is known of each idempotency key: who waits for its job, or the verdict.
type answers struct {
	mostBytes int64
	keepFor   time.Duration

	mu    sync.Mutex
	of    map[string]*entry
	kept  []*entry // that have their verdict, in the order in which they ended
	bytes int64    // of kept
}

type entry struct {
	digest string
	job    *job
	lanes  []*lane // that wait
	done   bool
	answer answer
	until  time.Time
}

func newAnswers(mostBytes int64, keepFor time.Duration) *answers {
	return &answers{mostBytes: mostBytes, keepFor: keepFor, of: map[string]*entry{}}
}

// enter looks a job's key up. A new one is entered, and the job has to be pushed. Otherwise the job is
// settled: its lane waits for the one that runs, or is given the verdict, or the conflict.
func (a *answers) enter(j *job) (fresh bool) {
	a.mu.Lock()
	e, known := a.of[j.key]
	switch {
	case !known:
		a.of[j.key] = &entry{digest: j.digest, job: j, lanes: []*lane{j.lane}}
		a.mu.Unlock()
		return true
	case e.digest != j.digest:
		a.mu.Unlock()
		j.lane.give(answer{key: j.key, trace: j.call.Trace, err: fmt.Errorf("%w: %q", rpc.ErrKeyConflict, j.key)})
	case e.done:
		found := e.answer
		a.mu.Unlock()
		found.trace = j.call.Trace
		j.lane.give(found)
	default:
		e.lanes = append(e.lanes, j.lane)
		a.mu.Unlock()
	}
	return false
}

// settle gives a job's answer to all that wait for it. A verdict is kept; a failure is not, so that
// the key can be tried again.
func (a *answers) settle(j *job, got answer, now time.Time) {
	a.mu.Lock()
	e := a.of[j.key]
	lanes := e.lanes
	e.lanes, e.job = nil, nil
	if got.err != nil {
		delete(a.of, j.key)
	} else {
		e.done, e.answer, e.until = true, got, now.Add(a.keepFor)
		a.kept = append(a.kept, e)
		a.bytes += got.size()
		a.forget(now)
	}
	a.mu.Unlock()
	for _, l := range lanes {
		l.give(got)
	}
}

// forget drops the oldest verdicts while they are too old or too many; the caller holds the lock.
func (a *answers) forget(now time.Time) {
	n := 0
	for ; n < len(a.kept) && (a.bytes > a.mostBytes || a.kept[n].until.Before(now)); n++ {
		old := a.kept[n]
		a.bytes -= old.answer.size()
		delete(a.of, old.answer.key)
	}
	a.kept = slices.Delete(a.kept, 0, n)
}

// tidy drops what is too old.
func (a *answers) tidy(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
}

// leave says that a lane no longer waits for a key. A job that nobody waits for, and that has not
// begun, is dropped from the queue and forgotten; only then it returns true.
func (a *answers) leave(l *lane, key string, q *queue) (droppedIt bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, known := a.of[key]
	if !known || e.done {
		return false
	}
	e.lanes = slices.DeleteFunc(e.lanes, func(other *lane) bool { return other == l })
	if len(e.lanes) > 0 || !q.drop(e.job) {
		return false
	}
	delete(a.of, key)
	return true
}
