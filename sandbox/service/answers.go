package service

import (
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// answers holds what is known about each idempotency key: the receivers that wait for its job, or the verdict.
type answers struct {
	mostBytes int64
	keepFor   time.Duration

	mu    sync.Mutex
	of    map[ownKey]*entry
	kept  []*entry // entries with a verdict, in the order in which they ended
	bytes int64    // size of kept
}

// ownKey is a key of one client. Other clients can use the same key for calls of their own.
type ownKey struct {
	client *client
	key    string
}

func (j *job) id() ownKey { return ownKey{j.receiver.client, j.key} }

type entry struct {
	id        ownKey
	digest    string
	job       *job
	receivers []*receiver // those that wait
	done      bool
	answer    answer
	until     time.Time
}

func newAnswers(mostBytes int64, keepFor time.Duration) *answers {
	return &answers{mostBytes: mostBytes, keepFor: keepFor, of: map[ownKey]*entry{}}
}

// enter looks up a job's key. If the key is new, enter records it, and the caller has to push the job. Otherwise the
// job needs nothing more: its receiver waits for the running job, or gets the verdict, or the conflict.
func (a *answers) enter(j *job) (fresh bool) {
	a.mu.Lock()
	e, known := a.of[j.id()]
	switch {
	case !known:
		a.of[j.id()] = &entry{id: j.id(), digest: j.digest, job: j, receivers: []*receiver{j.receiver}}
		a.mu.Unlock()
		return true
	case e.digest != j.digest:
		a.mu.Unlock()
		j.receiver.send(answer{key: j.key, trace: j.call.Trace, err: fmt.Errorf("%w: %q", rpc.ErrKeyConflict, j.key)})
	case e.done:
		found := e.answer
		a.mu.Unlock()
		found.trace = j.call.Trace
		j.receiver.send(found)
	default:
		e.receivers = append(e.receivers, j.receiver)
		a.mu.Unlock()
	}
	return false
}

// settle sends a job's answer to all receivers that wait for it. A verdict is kept. A failure is not kept, so that the
// key can be tried again.
func (a *answers) settle(j *job, got answer, now time.Time) {
	a.mu.Lock()
	e := a.of[j.id()]
	receivers := e.receivers
	e.receivers, e.job = nil, nil
	if got.err != nil {
		delete(a.of, j.id())
	} else {
		e.done, e.answer, e.until = true, got, now.Add(a.keepFor)
		a.kept = append(a.kept, e)
		a.bytes += got.size()
		a.forget(now)
	}
	a.mu.Unlock()
	for _, l := range receivers {
		l.send(got)
	}
}

// forget drops the oldest verdicts while they are too old or too large together. The caller holds the lock.
func (a *answers) forget(now time.Time) {
	n := 0
	for ; n < len(a.kept) && (a.bytes > a.mostBytes || a.kept[n].until.Before(now)); n++ {
		old := a.kept[n]
		a.bytes -= old.answer.size()
		delete(a.of, old.id)
	}
	a.kept = slices.Delete(a.kept, 0, n)
}

// tidy drops verdicts that are too old.
func (a *answers) tidy(now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.forget(now)
}

// leave says that a receiver no longer waits for a key. If no other receiver waits and the job has not begun, the job
// is dropped from the queue and forgotten, and leave returns it.
func (a *answers) leave(l *receiver, key string, q *queue) (dropped *job) {
	a.mu.Lock()
	defer a.mu.Unlock()
	e, known := a.of[ownKey{l.client, key}]
	if !known || e.done {
		return nil
	}
	e.receivers = slices.DeleteFunc(e.receivers, func(other *receiver) bool { return other == l })
	if len(e.receivers) > 0 || !q.drop(e.job) {
		return nil
	}
	delete(a.of, e.id)
	return e.job
}
