package service

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Options say how to serve. What is zero takes its default.
type Options struct {
	Executor sandbox.Executor
	Sessions sandbox.Sessions // nil: the executor, if it makes sessions

	QueueBytes int64         // of jobs that wait; default 256 MiB, at least rpc.MostMessage
	QueueLife  time.Duration // of jobs that name none; default two minutes
	KeepBytes  int64         // of verdicts kept by their keys; default 64 MiB
	KeepFor    time.Duration // how long they are kept; default ten minutes

	MostConnections int // at once; one more is told so and closed; default 4,096

	MostSessions int           // at once; default 1,024
	SessionIdle  time.Duration // after which a session is closed; default ten minutes

	Token   string       // that requests must bear; "" asks for none
	Log     *slog.Logger // default: slog's
	LogCode bool         // code and output go into the log as well
}

func (o Options) orDefault() Options {
	if o.QueueBytes == 0 {
		o.QueueBytes = 256 << 20
	}
	o.QueueBytes = max(o.QueueBytes, rpc.MostMessage)
	if o.QueueLife == 0 {
		o.QueueLife = sandbox.DefaultPreset.QueueLife
	}
	if o.KeepBytes == 0 {
		o.KeepBytes = 64 << 20
	}
	if o.KeepFor == 0 {
		o.KeepFor = 10 * time.Minute
	}
	if o.MostConnections <= 0 {
		o.MostConnections = 4096
	}
	if o.MostSessions == 0 {
		o.MostSessions = 1024
	}
	if o.SessionIdle == 0 {
		o.SessionIdle = 10 * time.Minute
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	if o.Sessions == nil {
		o.Sessions, _ = o.Executor.(sandbox.Sessions)
	}
	return o
}

// Service queues calls for an executor and answers them by their keys. Safe for concurrent use.
type Service struct {
	o           Options
	workers     int
	queue       *queue
	answers     *answers
	sessions    *sessionTable
	metrics     *metrics
	connections *connections
	bodies      *semaphore.Weighted // bytes of HTTP requests that were read and not yet answered

	life   context.Context // ends with Close: what runs is ended
	halt   context.CancelFunc
	tasks  sync.WaitGroup // workers and the clock
	served sync.WaitGroup // jobs taken in and not yet answered

	mu       sync.Mutex
	draining chan struct{} // closed when draining begins
	drains   bool
}

// New starts a service's workers. Close ends them; whoever opened the executor closes it.
func New(o Options) *Service {
	o = o.orDefault()
	life, halt := context.WithCancel(context.Background())
	s := &Service{
		o: o, workers: concurrency(o.Executor), queue: newQueue(o.QueueBytes), answers: newAnswers(o.KeepBytes, o.KeepFor),
		connections: newConnections(o.MostConnections), bodies: semaphore.NewWeighted(o.QueueBytes), life: life, halt: halt, draining: make(chan struct{}),
	}
	s.sessions = newSessionTable(o.Sessions, o.MostSessions, o.SessionIdle)
	s.metrics = newMetrics(s)
	// One more than run at once: the next call is at the executor's door when a place comes free.
	for range s.workers + 1 {
		s.tasks.Go(s.work)
	}
	s.tasks.Go(s.clock)
	return s
}

// concurrency is how many calls an executor runs at once.
func concurrency(e sandbox.Executor) int {
	if sized, ok := e.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}

// tick is how often the clock looks for what is over.
const tick = 100 * time.Millisecond

// clock ends jobs that waited too long, and forgets what is too old.
func (s *Service) clock() {
	every := time.NewTicker(tick)
	defer every.Stop()
	for {
		select {
		case <-s.life.Done():
			return
		case now := <-every.C:
			for _, j := range s.queue.expired(now) {
				s.settle(j, answer{err: tooLong(j)})
			}
			s.answers.tidy(now)
			s.sessions.evict(now)
		}
	}
}

// tooLong says nothing that was measured: the error may go into a record.
func tooLong(j *job) error {
	return fmt.Errorf("%w: its queue life is %s", sandbox.ErrQueueTimeout, j.expires.Sub(j.arrived))
}

// request is a call on its way in.
type request struct {
	key  string
	call sandbox.Call
	life time.Duration // in the queue; 0 takes the service's
}

// submit takes a call in; its answer goes to the lane. While the queue is full it waits. An error is
// ctx's end, after which there will be no answer.
func (s *Service) submit(ctx context.Context, l *lane, r request) error {
	size, err := s.queue.reserve(ctx, weigh(r.call))
	if err != nil {
		return err
	}
	return s.submitReserved(l, r, size)
}

// submitReserved is submit where there is room already.
func (s *Service) submitReserved(l *lane, r request, size int64) error {
	refuse := func(err error) error {
		s.queue.release(size)
		l.give(answer{key: r.key, trace: r.call.Trace, err: err})
		return nil
	}
	if err := s.check(r); err != nil {
		return refuse(err)
	}
	if !s.begin() {
		return refuse(rpc.ErrDraining)
	}
	now := time.Now()
	if r.life == 0 {
		r.life = s.o.QueueLife
	}
	j := &job{key: r.key, digest: r.call.Key(), call: r.call, arrived: now, expires: now.Add(r.life), size: size, lane: l}
	if s.answers.enter(j) {
		s.queue.push(j)
		return nil
	}
	s.queue.release(size)
	s.served.Done()
	return nil
}

// mostLife bounds the queue life that a request may ask for.
const mostLife = 24 * time.Hour

// check refuses what is malformed.
func (s *Service) check(r request) error {
	switch {
	case r.key == "" || len(r.key) > sandbox.MostTrace:
		return fmt.Errorf("%w: key has %d bytes, 1 to %d are taken", sandbox.ErrBadCall, len(r.key), sandbox.MostTrace)
	case r.life < 0 || r.life > mostLife:
		return fmt.Errorf("%w: queue_life is %s, 0 to %s are taken", sandbox.ErrBadCall, r.life, mostLife)
	}
	return r.call.Validate()
}

// begin counts a job in, unless the service drains.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drains {
		return false
	}
	s.served.Add(1)
	return true
}

// leave says that a lane no longer waits for a key's answer.
func (s *Service) leave(l *lane, key string) {
	if s.answers.leave(l, key, s.queue) {
		s.served.Done()
	}
}

// Drain has the service refuse new calls, and returns when those it has are answered or ctx ends.
func (s *Service) Drain(ctx context.Context) error {
	s.mu.Lock()
	if !s.drains {
		s.drains = true
		close(s.draining)
	}
	s.mu.Unlock()
	done := make(chan struct{})
	go func() { s.served.Wait(); close(done) }()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		jobs, _ := s.queue.depth()
		return fmt.Errorf("drain: %d calls still wait: %w", jobs, ctx.Err())
	}
}

// Depth is how much waits.
func (s *Service) Depth() (jobs int, bytes int64) { return s.queue.depth() }

// Draining reports whether the service takes no more calls.
func (s *Service) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drains
}

// Close ends what runs and waits for the workers. Closing twice is well.
func (s *Service) Close() error {
	s.halt()
	s.queue.close()
	s.tasks.Wait()
	return s.sessions.close()
}
