package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// queue holds the jobs that wait: first in, first out within a lane, lanes in turn.
type queue struct {
	capacity int64
	room     *semaphore.Weighted // bytes

	mu     sync.Mutex
	more   *sync.Cond // a job, or a lane's turn, or the end
	lanes  []*lane    // those that have jobs
	turn   int        // of lanes
	jobs   int
	bytes  int64
	first  time.Time // no job expires before; zero if none waits
	closed bool
}

func newQueue(capacity int64) *queue {
	q := &queue{capacity: capacity, room: semaphore.NewWeighted(capacity)}
	q.more = sync.NewCond(&q.mu)
	return q
}

// reserve waits for room; what it has got is given back by push's job, or by release. More than the
// queue can hold waits for all of it.
func (q *queue) reserve(ctx context.Context, size int64) (int64, error) {
	size = min(size, q.capacity)
	return size, q.room.Acquire(ctx, size)
}

// tryReserve is reserve where there is room at once.
func (q *queue) tryReserve(size int64) bool { return q.room.TryAcquire(size) }

func (q *queue) release(size int64) { q.room.Release(size) }

// push appends a job, for whose size there is room, to its lane.
func (q *queue) push(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	l := j.lane
	l.jobs = append(l.jobs, j)
	if !l.listed {
		l.listed = true
		q.lanes = append(q.lanes, l)
	}
	q.jobs++
	q.bytes += j.size
	if q.first.IsZero() || j.expires.Before(q.first) {
		q.first = j.expires
	}
	q.more.Signal()
}

// pop waits for a job and takes it; nil once the queue is closed.
func (q *queue) pop() *job {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if j := q.next(); j != nil {
			return j
		}
		q.more.Wait()
	}
	return nil
}

// next takes the first job of the first lane, from the turn on, whose reader keeps up.
func (q *queue) next() *job {
	for tried := 0; tried < len(q.lanes); {
		q.turn %= len(q.lanes)
		l := q.lanes[q.turn]
		if l.full() {
			q.turn++
			tried++
			continue
		}
		j := l.jobs[0]
		l.jobs[0] = nil
		l.jobs = l.jobs[1:]
		q.turn++
		if len(l.jobs) == 0 {
			q.unlist(l)
		}
		if j.take(running) {
			q.left(j)
			return j
		}
	}
	return nil
}

// unlist takes a lane without jobs out of the turns.
func (q *queue) unlist(l *lane) {
	at := slices.Index(q.lanes, l)
	q.lanes = slices.Delete(q.lanes, at, at+1)
	if at < q.turn {
		q.turn--
	}
	l.listed, l.jobs = false, nil
}

// left counts a job out.
func (q *queue) left(j *job) {
	q.jobs--
	q.bytes -= j.size
	q.room.Release(j.size)
}

// drop takes a job out if it still waits. Its place in the lane is cleared when its turn comes.
func (q *queue) drop(j *job) bool {
	if !j.take(dropped) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left(j)
	return true
}

// wake has the workers look again: a lane's reader has caught up.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more.Broadcast()
}

// expired takes out the jobs whose life ended before now.
func (q *queue) expired(now time.Time) (over []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first.IsZero() || now.Before(q.first) {
		return nil
	}
	q.first = time.Time{}
	for _, l := range slices.Clone(q.lanes) {
		l.jobs = slices.DeleteFunc(l.jobs, func(j *job) bool {
			if now.Before(j.expires) {
				if q.first.IsZero() || j.expires.Before(q.first) {
					q.first = j.expires
				}
				return j.place.Load() != waiting
			}
			if j.take(dropped) {
				q.left(j)
				over = append(over, j)
			}
			return true
		})
		if len(l.jobs) == 0 {
			q.unlist(l)
		}
	}
	return over
}

// depth is how much waits.
func (q *queue) depth() (jobs int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs, q.bytes
}

// close ends pop for everybody.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}
