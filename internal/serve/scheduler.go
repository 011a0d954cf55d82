package serve

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/policy"
)

// scheduler owns the batch. Its goroutine (run) lets queued rows join, steps, and hands out what each step brings.
type scheduler struct {
	engine  policy.Batcher
	bounds  policy.BatchOptions
	most    int // rows in the queue
	metrics *metrics
	log     *slog.Logger

	mu      sync.Mutex
	wake    *sync.Cond
	queue   []*job
	load    *loading // that waits or runs; nil = none
	stopped bool
	broken  error  // why nothing is served any more
	weights string // digest

	batch  policy.Batch      // of the goroutine alone, like what follows
	before policy.BatchUsage // of earlier batches
	rows   map[int64]*job    // in the batch
	usage  atomic.Pointer[policy.BatchUsage]
}

// job is one row of a request.
type job struct {
	row     policy.BatchRow
	choice  int
	inbox   *inbox
	id      int64 // in the batch
	dropped atomic.Bool
}

// loading is a request for new weights.
type loading struct {
	dir   string
	check func() error // immediately before the engine loads
	done  chan error
}

func newScheduler(o Options, m *metrics) (*scheduler, error) {
	s := &scheduler{
		engine: o.Engine, bounds: policy.BatchOptions{Rows: o.Rows, Tokens: o.Tokens}, most: o.Queue, metrics: m,
		log: o.Log, rows: map[int64]*job{},
	}
	s.wake = sync.NewCond(&s.mu)
	if err := s.open(context.Background()); err != nil {
		return nil, err
	}
	return s, nil
}

// open opens a batch of the weights that are loaded.
func (s *scheduler) open(ctx context.Context) error {
	state, err := s.engine.State(ctx, policy.RolePolicy)
	if err != nil {
		return err
	}
	if u := s.usage.Load(); u != nil {
		s.before = *u
	}
	if s.batch, err = s.engine.Batch(ctx, policy.RolePolicy, s.bounds); err != nil {
		return err
	}
	s.note()
	s.mu.Lock()
	s.weights = state.Digest
	s.mu.Unlock()
	return nil
}

// note publishes what the batch holds and has done, with what earlier batches have done.
func (s *scheduler) note() {
	u := s.batch.Usage()
	u.PrefixTokens += s.before.PrefixTokens
	u.ReusedTokens += s.before.ReusedTokens
	u.NewTokens += s.before.NewTokens
	s.usage.Store(&u)
}

// total says what the batch holds, and what has been done since the start.
func (s *scheduler) total() policy.BatchUsage { return *s.usage.Load() }

// ended is why nothing is served any more. The caller holds the lock.
func (s *scheduler) ended() *apiError {
	switch {
	case s.broken != nil:
		return errBroken
	case s.stopped:
		return errDraining
	}
	return nil
}

// submit queues a request's rows, all or none of them.
func (s *scheduler) submit(jobs []*job) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(); err != nil {
		return err
	}
	if len(s.queue) > 0 && len(s.queue)+len(jobs) > s.most {
		return errFull(len(s.queue))
	}
	s.queue = append(s.queue, jobs...)
	s.wake.Signal()
	return nil
}

// drop gives up rows whose answers are not needed any more.
func (s *scheduler) drop(jobs []*job) {
	for _, j := range jobs {
		j.dropped.Store(true)
	}
	s.mu.Lock()
	s.wake.Signal()
	s.mu.Unlock()
}

// queued is the number of rows that wait.
func (s *scheduler) queued() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.queue)
}

// current is the digest of the weights, and why nothing is served any more.
func (s *scheduler) current() (weights string, broken error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.weights, s.broken
}

// errBusy says that other weights are being loaded.
var errBusy = fault(409, typeInvalid, "other weights are being loaded").coded("loading")

// replace loads the folder dir when no request is in flight: requests of which a row has joined end first, those that
// have only been queued wait. It returns when the engine has the new weights or has refused them.
func (s *scheduler) replace(ctx context.Context, dir string, check func() error) error {
	l := &loading{dir: dir, check: check, done: make(chan error, 1)}
	if err := s.request(l); err != nil {
		return err
	}
	select {
	case err := <-l.done:
		return err
	case <-ctx.Done():
		return ctx.Err() // the weights may be loaded nevertheless
	}
}

// request notes a request for new weights, unless there is one already.
func (s *scheduler) request(l *loading) *apiError {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.ended(); err != nil || s.load != nil {
		return cmp.Or(err, errBusy)
	}
	s.load = l
	s.wake.Signal()
	return nil
}

// stop ends the goroutine. Rows that are left get an error.
func (s *scheduler) stop() {
	s.mu.Lock()
	s.stopped = true
	s.wake.Signal()
	s.mu.Unlock()
}

// run is the goroutine. It returns after stop.
func (s *scheduler) run(ctx context.Context) {
	for {
		jobs, load, stopped := s.next()
		if stopped {
			break
		}
		if load != nil {
			s.reload(ctx, load)
			continue
		}
		if err := rescue.Do(func() error { return s.turn(ctx, jobs) }); err != nil && !s.reopen(ctx, err) {
			break
		}
	}
	s.mu.Lock()
	left, load, why := s.queue, s.load, s.ended()
	s.queue, s.stopped = nil, true
	s.mu.Unlock()
	for _, j := range left {
		j.inbox.fail(why)
	}
	for _, j := range s.rows {
		j.inbox.fail(why)
	}
	if load != nil {
		load.done <- why
	}
	if s.batch != nil {
		if err := s.batch.Close(); err != nil {
			s.log.Warn("close the batch", "error", err)
		}
	}
}

// next waits until there is something to do. It returns a load only when no row is in flight that belongs to the old
// weights, and otherwise the queued rows that may join.
func (s *scheduler) next() (jobs []*job, load *loading, stopped bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for {
		s.queue = slices.DeleteFunc(s.queue, func(j *job) bool { return j.dropped.Load() })
		for _, j := range s.queue {
			if s.load == nil || j.inbox.started.Load() {
				jobs = append(jobs, j)
			}
		}
		switch {
		case s.stopped:
			return nil, nil, true
		case len(jobs) > 0 || len(s.rows) > 0:
			return jobs, nil, false
		case s.load != nil:
			return nil, s.load, false
		}
		s.wake.Wait()
	}
}

// turn lets rows join, and steps once.
func (s *scheduler) turn(ctx context.Context, jobs []*job) error {
	defer s.note()
	for id, j := range s.rows {
		if j.dropped.Load() {
			if err := s.batch.Remove(ctx, id); err != nil {
				return err
			}
			delete(s.rows, id)
		}
	}
	joined := map[*job]bool{}
	for _, j := range jobs {
		id, err := s.batch.Add(ctx, j.row)
		if errors.Is(err, policy.ErrFull) {
			break
		}
		joined[j] = true
		switch {
		case errors.Is(err, policy.ErrBadRequest):
			j.inbox.fail(invalid("", "%v", err))
			continue
		case err != nil:
			return err
		}
		j.id = id
		s.rows[id] = j
		j.inbox.start(s.weights)
	}
	s.mu.Lock()
	s.queue = slices.DeleteFunc(s.queue, func(j *job) bool { return joined[j] })
	s.mu.Unlock()
	if len(s.rows) == 0 {
		return nil
	}
	events, err := s.batch.Step(ctx)
	if err != nil {
		return err
	}
	now := time.Now()
	for _, e := range events {
		j, ok := s.rows[e.Row]
		if !ok {
			continue
		}
		if e.Finish != "" || e.Err != nil {
			delete(s.rows, e.Row)
		}
		s.metrics.event(e, now.Sub(j.inbox.began))
		j.inbox.put(j.choice, e)
	}
	return nil
}

// reopen goes on after an error of the engine: the rows in the batch fail, and later ones get a new batch. It reports
// whether that was possible.
func (s *scheduler) reopen(ctx context.Context, cause error) bool {
	s.log.Error("the engine failed", "error", cause, "stack", rescue.Stack(cause))
	for id, j := range s.rows {
		j.inbox.fail(errBroken)
		delete(s.rows, id)
	}
	err := errors.Join(rescue.Do(s.batch.Close), rescue.Do(func() error { return s.open(ctx) }))
	if err == nil {
		return true
	}
	s.log.Error("the engine cannot be used any more", "error", err)
	s.mu.Lock()
	s.broken = err
	s.mu.Unlock()
	return false
}

// reload loads new weights, while no row is in the batch. If the engine refuses them, the old ones stay.
func (s *scheduler) reload(ctx context.Context, l *loading) {
	err := l.check()
	if err == nil {
		if err = s.batch.Close(); err == nil {
			err = rescue.Do(func() error { return s.engine.Load(ctx, policy.RolePolicy, l.dir, false) })
		}
		if again := rescue.Do(func() error { return s.open(ctx) }); again != nil {
			s.log.Error("no batch can be opened after a load", "error", again)
			s.mu.Lock()
			s.broken, s.stopped = again, true
			s.mu.Unlock()
			err = errors.Join(err, again)
		}
	}
	s.mu.Lock()
	s.load = nil
	s.mu.Unlock()
	l.done <- err
}
