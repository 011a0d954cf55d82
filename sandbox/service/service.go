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

// Options say how to serve. An option of zero means its default.
type Options struct {
	Executor sandbox.Executor
	Sessions sandbox.Sessions // nil means the executor, if it offers sessions

	QueueBytes int64         // size of all waiting jobs; default 256 MiB, at least rpc.MostMessage
	QueueLife  time.Duration // how long a job may wait if it does not say; default two minutes
	KeepBytes  int64         // size of all verdicts kept by their keys; default 64 MiB
	KeepFor    time.Duration // how long they are kept; default ten minutes

	MostConnections int // connections at once; another one is refused with an answer; default 4,096

	MostSessions int           // sessions at once; default 1,024
	SessionIdle  time.Duration // idle time after which a session is closed; default ten minutes

	Token   string       // the token of the only client, if there are no Clients; "" means that none is needed
	Clients []Client     // who may use the service
	Log     *slog.Logger // default: slog.Default
	LogCode bool         // also log code and output
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
	if o.Token != "" && len(o.Clients) == 0 {
		o.Clients = []Client{{Name: defaultClient, Tokens: []Token{TokenOf(o.Token)}}}
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
	clients     *clients
	strangers   notices // requests without a valid token
	sessions    *sessionTable
	metrics     *metrics
	connections *connections
	bodies      *semaphore.Weighted // bytes of HTTP requests that have been read but not answered
	bodyPause   time.Duration       // a body is refused if nothing arrives for this long
	decoding    *decoding           // bytes of streams' requests that have been decoded but not accepted

	life   context.Context // ends with Close, which ends running calls
	halt   context.CancelFunc
	tasks  sync.WaitGroup // the workers and the clock
	served sync.WaitGroup // jobs accepted but not answered

	mu       sync.Mutex
	draining chan struct{} // closed when draining begins
	drains   bool
}

// New starts a service's workers. Close ends them. The caller that opened the executor closes it.
func New(o Options) *Service {
	o = o.orDefault()
	life, halt := context.WithCancel(context.Background())
	s := &Service{
		o: o, workers: concurrency(o.Executor), queue: newQueue(o.QueueBytes),
		answers:     newAnswers(o.KeepBytes, o.KeepFor),
		clients:     &clients{queueBytes: o.QueueBytes, log: o.Log},
		connections: newConnections(o.MostConnections),
		bodies:      semaphore.NewWeighted(o.QueueBytes), bodyPause: bodyPause,
		decoding: newDecoding(o.QueueBytes, life), life: life, halt: halt, draining: make(chan struct{}),
	}
	s.sessions = &sessionTable{make: o.Sessions, most: o.MostSessions, each: map[*client]int{}}
	s.clients.set(o.Clients)
	s.metrics = newMetrics(s)
	// One more worker than the executor runs at once, so that the next call waits in the executor when a place becomes
	// free.
	for range s.workers + 1 {
		s.tasks.Go(s.work)
	}
	s.tasks.Go(s.clock)
	return s
}

// concurrency returns how many calls an executor runs at once.
func concurrency(e sandbox.Executor) int {
	if sized, ok := e.(interface{ Workers() int }); ok {
		return max(sized.Workers(), 1)
	}
	return runtime.NumCPU()
}

// tick is how often the clock checks for jobs that have expired.
const tick = 100 * time.Millisecond

// clock ends jobs that have waited too long, and forgets old verdicts.
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
		}
	}
}

// tooLong contains nothing that was measured, because the error may go into a record.
func tooLong(j *job) error {
	return fmt.Errorf("%w: its queue life is %s", sandbox.ErrQueueTimeout, j.expires.Sub(j.arrived))
}

// request is a call before it is accepted.
type request struct {
	key  string
	call sandbox.Call
	life time.Duration // queue life; 0 means the service's
}

// submit accepts a call, whose answer will go to the receiver. It waits while the client has as much in the service as
// it may, and while the queue is full. It fails if ctx ends; then there will be no answer.
func (s *Service) submit(ctx context.Context, l *receiver, r request) error {
	q := l.client.quota.Load()
	if err := l.client.wait(ctx, q.calls, 1, limitCalls); err != nil {
		return err
	}
	size, err := s.queue.reserve(ctx, l.client, q, weigh(r.call))
	if err != nil {
		giveBack(q.calls, 1)
		return err
	}
	return s.submitReserved(l, r, q, size)
}

// submitReserved is submit for a call that already has room in the queue.
func (s *Service) submitReserved(l *receiver, r request, q *quota, size int64) error {
	refuse := func(err error) error {
		s.queue.release(q, size)
		giveBack(q.calls, 1)
		l.send(answer{key: r.key, trace: r.call.Trace, err: err})
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
	j := &job{key: r.key, digest: r.call.Key(), call: r.call, arrived: now, expires: now.Add(r.life), size: size,
		receiver: l, quota: q}
	l.client.calls.Add(1)
	if s.answers.enter(j) {
		s.queue.push(j)
		return nil
	}
	s.queue.release(q, size)
	s.finish(l.client, q)
	return nil
}

// finish counts a job that gets no answer of its own.
func (s *Service) finish(c *client, q *quota) {
	c.release(q)
	s.served.Done()
}

// mostLife is the longest queue life that a request may ask for.
const mostLife = 24 * time.Hour

// check returns an error if the request is malformed.
func (s *Service) check(r request) error {
	switch {
	case r.key == "" || len(r.key) > sandbox.MostTrace:
		return fmt.Errorf("%w: key has %d bytes, 1 to %d are taken", sandbox.ErrBadCall, len(r.key), sandbox.MostTrace)
	case r.life < 0 || r.life > mostLife:
		return fmt.Errorf("%w: queue_life is %s, 0 to %s are taken", sandbox.ErrBadCall, r.life, mostLife)
	}
	return r.call.Validate()
}

// begin counts an accepted job. It returns false if the service is draining.
func (s *Service) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.drains {
		return false
	}
	s.served.Add(1)
	return true
}

// leave says that a receiver no longer waits for a key's answer.
func (s *Service) leave(l *receiver, key string) {
	if j := s.answers.leave(l, key, s.queue); j != nil {
		s.finish(l.client, j.quota)
	}
}

// Drain makes the service refuse new calls. It returns when all accepted calls are answered or ctx ends.
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

// Depth returns how many jobs wait, and their size.
func (s *Service) Depth() (jobs int, bytes int64) { return s.queue.depth() }

// Draining reports whether the service takes no more calls.
func (s *Service) Draining() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.drains
}

// Close ends running calls and waits for the workers. A second call does nothing.
func (s *Service) Close() error {
	s.halt()
	s.queue.close()
	s.tasks.Wait()
	return nil
}
