package client

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Client runs calls and makes sessions in services. Safe for concurrent use.
type Client struct {
	o     Options
	life  context.Context
	halt  context.CancelFunc
	tasks sync.WaitGroup

	mu      sync.Mutex
	nodes   []*node
	flying  map[string]*flight // by their keys
	pending []*flight          // of those, what no node has
	alone   time.Time          // since when no node has been ready; zero while one is
	known   chan struct{}
	pace    pace
	least   sandbox.Tier // of the nodes that are used; "" takes any
	closed  bool
}

var (
	_ sandbox.Executor = (*Client)(nil)
	_ sandbox.Sessions = (*Client)(nil)
)

var errClosed = fmt.Errorf("%w: client is closed", sandbox.ErrInfrastructure)

// Open starts to connect; Ready waits for it.
func Open(o Options) (*Client, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	life, halt := context.WithCancel(context.Background())
	c := &Client{o: o, life: life, halt: halt, flying: map[string]*flight{}, alone: time.Now(), known: make(chan struct{})}
	for _, address := range o.Addresses {
		n, err := c.newNode(address)
		if err != nil {
			c.Close()
			return nil, err
		}
		c.nodes = append(c.nodes, n)
	}
	for _, n := range c.nodes {
		c.tasks.Go(n.live)
	}
	c.tasks.Go(c.watch)
	return c, nil
}

// Request is a call with what is only the client's business.
type Request struct {
	Call      sandbox.Call
	Key       string        // "" makes one; requests with one key must hold one call
	QueueLife time.Duration // 0 takes the preset's
}

// Run implements sandbox.Executor.
func (c *Client) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	requests := make([]Request, len(calls))
	for i, call := range calls {
		requests[i].Call = call
	}
	return c.Do(ctx, requests)
}

// Do runs requests and returns results in their order; errors are those of sandbox.Executor.
func (c *Client) Do(ctx context.Context, requests []Request) ([]sandbox.Result, error) {
	b := &batch{results: make([]sandbox.Result, len(requests)), broken: make(sandbox.CallErrors, len(requests)),
		left: len(requests) + 1, landed: make(chan struct{})} // one more: it cannot land before it is launched
	tasks := make([]*rpc.Task, len(requests))
	for i, r := range requests {
		if err := r.Call.Validate(); err != nil {
			seat{b, i}.fill(sandbox.Result{}, err)
			continue
		}
		tasks[i] = c.task(r)
	}
	if err := c.launch(b, tasks); err != nil {
		return nil, err
	}
	select {
	case <-b.landed:
	case <-ctx.Done():
		c.recall(b, tasks)
		return nil, ctx.Err()
	}
	if b.faults {
		return b.results, b.broken
	}
	return b.results, nil
}

func (c *Client) task(r Request) *rpc.Task {
	if r.Key == "" {
		r.Key = rand.Text()
	}
	if r.QueueLife == 0 {
		r.QueueLife = c.o.Preset.QueueLife
	}
	return &rpc.Task{Key: r.Key, Call: rpc.FromCall(r.Call), QueueLifeNs: int64(r.QueueLife)}
}

// launch has tasks fly; one whose key flies already is waited for.
func (c *Client) launch(b *batch, tasks []*rpc.Task) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	for i, task := range tasks {
		if task == nil {
			continue
		}
		at := seat{b, i}
		f := c.flying[task.Key]
		switch {
		case f == nil:
			f = &flight{key: task.Key, task: task, seats: []seat{at}}
			c.flying[task.Key] = f
			c.pend(f)
		case f.same(task):
			f.seats = append(f.seats, at)
		default:
			at.fill(sandbox.Result{}, fmt.Errorf("%w: %q", rpc.ErrKeyConflict, task.Key))
		}
	}
	if b.left--; b.left == 0 {
		close(b.landed)
	}
	c.dispatch()
	return nil
}

// recall gives up what a batch waits for. A flight that nobody waits for is over.
func (c *Client) recall(b *batch, tasks []*rpc.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, task := range tasks {
		f := c.flying[task.GetKey()]
		if f == nil {
			continue
		}
		f.seats = slices.DeleteFunc(f.seats, func(s seat) bool { return s.batch == b })
		if len(f.seats) == 0 {
			c.finish(f)
		}
	}
}

// Ready waits until a node takes calls. An error says why none does.
func (c *Client) Ready(ctx context.Context) error {
	for {
		c.mu.Lock()
		ready, refused, changed := c.alone.IsZero(), c.refusedByAll(), c.known
		reason := c.reasons()
		c.mu.Unlock()
		switch {
		case ready:
			return nil
		case refused:
			return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, reason)
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, reason)
		}
	}
}

// Nodes is how many nodes take calls.
func (c *Client) Nodes() (taking int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, n := range c.nodes {
		if n.takes() {
			taking++
		}
	}
	return taking
}

// Workers is how many calls all nodes that are ready run at once; 1 while none is.
func (c *Client) Workers() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	sum := 0
	for _, n := range c.nodes {
		if n.ready {
			sum += n.workers
		}
	}
	return max(sum, 1)
}

// Tier is the weakest isolation of the nodes that are ready; "" while none is, or where one does not say.
func (c *Client) Tier() sandbox.Tier {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.weakest()
}

func (c *Client) weakest() (weakest sandbox.Tier) {
	first := true
	for _, n := range c.nodes {
		if n.ready && (first || weakest.AtLeast(n.tier)) {
			weakest, first = n.tier, false
		}
	}
	return weakest
}

// Hold returns the weakest isolation of the nodes that are ready, and has no call run in a weaker one from
// then on: what a node says that comes later, or comes back, was not known to whoever relies on it.
func (c *Client) Hold() sandbox.Tier {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = c.weakest()
	return c.least
}

// Close gives up what is in flight and closes the connections. Closing twice is well.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.halt()
	c.tasks.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.pending {
		c.land(f, sandbox.Result{}, errClosed)
	}
	c.pending = nil
	for _, n := range c.nodes {
		n.conn.Close()
	}
	return nil
}
