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

// Client runs calls and opens sessions in services. Safe for concurrent use.
type Client struct {
	o     Options
	life  context.Context
	halt  context.CancelFunc
	tasks sync.WaitGroup

	mu          sync.Mutex
	nodes       []*node
	outstanding map[string]*outstanding // calls without a result, by key
	pending     []*outstanding          // those of them that no node has
	noneReady   time.Time               // since when no node has been ready; zero while one is ready
	known       chan struct{}           // closed and replaced when a node's state changes
	latency     latency
	least       sandbox.Tier // the weakest tier of nodes to use; "" means any
	closed      bool
}

var (
	_ sandbox.Executor = (*Client)(nil)
	_ sandbox.Sessions = (*Client)(nil)
)

var errClosed = fmt.Errorf("%w: client is closed", sandbox.ErrInfrastructure)

// Open starts to connect. Ready waits until that has succeeded.
func Open(o Options) (*Client, error) {
	o, err := o.orDefault()
	if err != nil {
		return nil, err
	}
	life, halt := context.WithCancel(context.Background())
	c := &Client{o: o, life: life, halt: halt, outstanding: map[string]*outstanding{}, noneReady: time.Now(),
		known: make(chan struct{})}
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

// Request is a call with settings for the client.
type Request struct {
	Call      sandbox.Call
	Key       string        // "" means a new one; requests with the same key must have the same call
	QueueLife time.Duration // 0 means the preset's
}

// Run implements sandbox.Executor.
func (c *Client) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	requests := make([]Request, len(calls))
	for i, call := range calls {
		requests[i].Call = call
	}
	return c.Do(ctx, requests)
}

// Do runs requests and returns their results in order. Its errors are those of sandbox.Executor.
func (c *Client) Do(ctx context.Context, requests []Request) ([]sandbox.Result, error) {
	b := &batch{results: make([]sandbox.Result, len(requests)), broken: make(sandbox.CallErrors, len(requests)),
		// one more, so that the batch cannot be done before it is submitted
		left: len(requests) + 1, done: make(chan struct{})}
	tasks := make([]*rpc.Task, len(requests))
	for i, r := range requests {
		if err := r.Call.Validate(); err != nil {
			waiter{b, i}.fill(sandbox.Result{}, err)
			continue
		}
		tasks[i] = c.task(r)
	}
	if err := c.submit(b, tasks); err != nil {
		return nil, err
	}
	select {
	case <-b.done:
	case <-ctx.Done():
		c.abandon(b, tasks)
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

// submit sends tasks. If a task's key is outstanding already, its result is shared.
func (c *Client) submit(b *batch, tasks []*rpc.Task) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return errClosed
	}
	for i, task := range tasks {
		if task == nil {
			continue
		}
		at := waiter{b, i}
		f := c.outstanding[task.Key]
		switch {
		case f == nil:
			f = &outstanding{key: task.Key, task: task, waiters: []waiter{at}}
			c.outstanding[task.Key] = f
			c.enqueue(f)
		case f.same(task):
			f.waiters = append(f.waiters, at)
		default:
			at.fill(sandbox.Result{}, fmt.Errorf("%w: %q", rpc.ErrKeyConflict, task.Key))
		}
	}
	if b.left--; b.left == 0 {
		close(b.done)
	}
	c.dispatch()
	return nil
}

// abandon stops waiting for a batch. A call that no other batch waits for is cancelled.
func (c *Client) abandon(b *batch, tasks []*rpc.Task) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, task := range tasks {
		f := c.outstanding[task.GetKey()]
		if f == nil {
			continue
		}
		f.waiters = slices.DeleteFunc(f.waiters, func(w waiter) bool { return w.batch == b })
		if len(f.waiters) == 0 {
			c.finish(f)
		}
	}
}

// Ready waits until a node accepts calls. The error says why none does.
func (c *Client) Ready(ctx context.Context) error {
	for {
		c.mu.Lock()
		ready, refused, changed := c.noneReady.IsZero(), c.refusedByAll(), c.known
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

// Nodes returns how many nodes accept calls.
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

// Workers returns how many calls all ready nodes run at once; 1 while none is ready.
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

// Tier returns the weakest isolation of the ready nodes; "" while none is ready, or if one does not report it.
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

// Hold returns the weakest isolation of the ready nodes, and from then on no call runs in a weaker one. The tier of a
// node that connects later, or reconnects, was not known to the caller.
func (c *Client) Hold() sandbox.Tier {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.least = c.weakest()
	return c.least
}

// Close gives up outstanding calls and closes the connections. A second call does nothing.
func (c *Client) Close() error {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.halt()
	c.tasks.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, f := range c.pending {
		c.settle(f, sandbox.Result{}, errClosed)
	}
	c.pending = nil
	for _, n := range c.nodes {
		n.conn.Close()
	}
	return nil
}
