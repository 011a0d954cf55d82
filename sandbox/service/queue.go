package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// queue holds the waiting jobs: first in, first out for each receiver, receivers in turn.
type queue struct {
	capacity int64
	room     *semaphore.Weighted // bytes

	mu        sync.Mutex
	more      *sync.Cond  // signals a new job, a receiver that has caught up, or the end
	receivers []*receiver // those with jobs
	turn      int         // index of the receiver whose turn it is
	jobs      int
	bytes     int64
	first     time.Time // no job expires before this time; zero if none waits
	closed    bool
}

func newQueue(capacity int64) *queue {
	q := &queue{capacity: capacity, room: semaphore.NewWeighted(capacity)}
	q.more = sync.NewCond(&q.mu)
	return q
}

// reserve waits for room and returns how much it has reserved. The room is released when the job leaves the queue, or
// by release. A size above the capacity waits for the whole capacity.
func (q *queue) reserve(ctx context.Context, size int64) (int64, error) {
	size = min(size, q.capacity)
	return size, q.room.Acquire(ctx, size)
}

// tryReserve is reserve without waiting.
func (q *queue) tryReserve(size int64) bool { return q.room.TryAcquire(size) }

func (q *queue) release(size int64) { q.room.Release(size) }

// push appends a job, which has room reserved, to its receiver's jobs.
func (q *queue) push(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := j.receiver
	r.jobs = append(r.jobs, j)
	if !r.listed {
		r.listed = true
		q.receivers = append(q.receivers, r)
	}
	q.jobs++
	q.bytes += j.size
	if q.first.IsZero() || j.expires.Before(q.first) {
		q.first = j.expires
	}
	q.more.Signal()
}

// pop waits for a job and removes it. It returns nil once the queue is closed.
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

// next removes the first job of the next receiver whose client keeps up with its answers.
func (q *queue) next() *job {
	for tried := 0; tried < len(q.receivers); {
		q.turn %= len(q.receivers)
		r := q.receivers[q.turn]
		if r.full() {
			q.turn++
			tried++
			continue
		}
		j := r.jobs[0]
		r.jobs[0] = nil
		r.jobs = r.jobs[1:]
		q.turn++
		if len(r.jobs) == 0 {
			q.unlist(r)
		}
		if j.take(running) {
			q.left(j)
			return j
		}
	}
	return nil
}

// unlist removes a receiver without jobs from the turns.
func (q *queue) unlist(r *receiver) {
	at := slices.Index(q.receivers, r)
	q.receivers = slices.Delete(q.receivers, at, at+1)
	if at < q.turn {
		q.turn--
	}
	r.listed, r.jobs = false, nil
}

// left counts a job that leaves the queue, and releases its room.
func (q *queue) left(j *job) {
	q.jobs--
	q.bytes -= j.size
	q.room.Release(j.size)
}

// drop removes a job if it still waits. Its entry among the receiver's jobs is removed when its turn comes.
func (q *queue) drop(j *job) bool {
	if !j.take(dropped) {
		return false
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.left(j)
	return true
}

// wake makes the workers check again, since a client has caught up with its answers.
func (q *queue) wake() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.more.Broadcast()
}

// expired removes the jobs whose queue life ended before now, and returns them.
func (q *queue) expired(now time.Time) (over []*job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.first.IsZero() || now.Before(q.first) {
		return nil
	}
	q.first = time.Time{}
	for _, r := range slices.Clone(q.receivers) {
		r.jobs = slices.DeleteFunc(r.jobs, func(j *job) bool {
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
		if len(r.jobs) == 0 {
			q.unlist(r)
		}
	}
	return over
}

// depth returns how many jobs wait, and their size.
func (q *queue) depth() (jobs int, bytes int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.jobs, q.bytes
}

// close ends every pop.
func (q *queue) close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	q.more.Broadcast()
}
