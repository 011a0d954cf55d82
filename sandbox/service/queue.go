package service

import (
	"context"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"
)

// queue holds the waiting jobs: first in, first out for each receiver. Clients take turns, and so do the receivers of
// a client.
type queue struct {
	capacity int64
	room     *semaphore.Weighted // bytes

	mu     sync.Mutex
	more   *sync.Cond // signals a new job, a receiver that has caught up, a client that may run more, or the end
	lanes  []*lane    // those with jobs
	turn   int        // index of the lane whose turn it is
	jobs   int
	bytes  int64
	first  time.Time // no job expires before this time; zero if none waits
	closed bool
}

// lane is a client's part of the queue.
type lane struct {
	receivers []*receiver // those with jobs
	turn      int         // index of the receiver whose turn it is
	running   int         // jobs that run
	listed    bool        // whether it is among the queue's lanes
}

func newQueue(capacity int64) *queue {
	q := &queue{capacity: capacity, room: semaphore.NewWeighted(capacity)}
	q.more = sync.NewCond(&q.mu)
	return q
}

// reserve waits for room, in the client's part and in the whole queue, and returns how much it has reserved. The room
// is released when the job leaves the queue, or by release. A size above the capacity waits for the whole capacity.
func (q *queue) reserve(ctx context.Context, c *client, part *quota, size int64) (int64, error) {
	size = min(size, q.capacity)
	if part.Bytes > 0 {
		size = min(size, part.Bytes)
	}
	if err := c.wait(ctx, part.queued, size, limitBytes); err != nil {
		return 0, err
	}
	if err := q.room.Acquire(ctx, size); err != nil {
		giveBack(part.queued, size)
		return 0, err
	}
	return size, nil
}

func (q *queue) release(part *quota, size int64) {
	giveBack(part.queued, size)
	q.room.Release(size)
}

// tryReserve is reserve without waiting, and in the whole queue only. releaseRoom releases it.
func (q *queue) tryReserve(size int64) bool { return q.room.TryAcquire(size) }

func (q *queue) releaseRoom(size int64) { q.room.Release(size) }

// push appends a job, which has room reserved, to its receiver's jobs.
func (q *queue) push(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	r := j.receiver
	l := &r.client.lane
	r.jobs = append(r.jobs, j)
	if !r.listed {
		r.listed = true
		l.receivers = append(l.receivers, r)
	}
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

// pop waits for a job and removes it. It returns nil once the queue is closed. The job counts as running until ran.
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

// ran says that a job no longer runs.
func (q *queue) ran(j *job) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := j.receiver.client
	c.lane.running--
	if c.quota.Load().Running > 0 {
		q.more.Signal()
	}
}

// next removes a job of the next client that may run one more.
func (q *queue) next() *job {
	for range len(q.lanes) {
		if len(q.lanes) == 0 {
			return nil
		}
		q.turn %= len(q.lanes)
		l := q.lanes[q.turn]
		q.turn++
		j := l.next(q)
		if len(l.receivers) == 0 {
			q.unlist(l)
		}
		if j != nil {
			l.running++
			q.left(j)
			return j
		}
	}
	return nil
}

// next removes the first job of the client's next receiver that keeps up with its answers.
func (l *lane) next(q *queue) *job {
	for tried := 0; tried < len(l.receivers); {
		l.turn %= len(l.receivers)
		r := l.receivers[l.turn]
		if most := r.client.quota.Load().Running; most > 0 && l.running >= most {
			return nil
		}
		if r.full() {
			l.turn++
			tried++
			continue
		}
		j := r.jobs[0]
		r.jobs[0] = nil
		r.jobs = r.jobs[1:]
		l.turn++
		if len(r.jobs) == 0 {
			l.unlist(r)
		}
		if j.take(running) {
			return j
		}
	}
	return nil
}

// unlist removes a lane without jobs from the turns.
func (q *queue) unlist(l *lane) {
	at := slices.Index(q.lanes, l)
	q.lanes = slices.Delete(q.lanes, at, at+1)
	if at < q.turn {
		q.turn--
	}
	l.listed = false
}

// unlist removes a receiver without jobs from the turns of its client.
func (l *lane) unlist(r *receiver) {
	at := slices.Index(l.receivers, r)
	l.receivers = slices.Delete(l.receivers, at, at+1)
	if at < l.turn {
		l.turn--
	}
	r.listed, r.jobs = false, nil
}

// left counts a job that leaves the queue, and releases its room.
func (q *queue) left(j *job) {
	q.jobs--
	q.bytes -= j.size
	q.release(j.quota, j.size)
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
	for _, l := range slices.Clone(q.lanes) {
		for _, r := range slices.Clone(l.receivers) {
			over = append(over, q.expiredOf(r, now)...)
			if len(r.jobs) == 0 {
				l.unlist(r)
			}
		}
		if len(l.receivers) == 0 {
			q.unlist(l)
		}
	}
	return over
}

// expiredOf removes the expired jobs of one receiver.
func (q *queue) expiredOf(r *receiver, now time.Time) (over []*job) {
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
