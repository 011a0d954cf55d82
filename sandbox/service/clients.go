package service

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Client is a program, or a group of programs, that may use the service.
type Client struct {
	Name   string
	Tokens []Token // requests bear one of them
	Quota  Quota
}

// Token is the SHA-256 of a token, so that the service keeps nothing that a request could bear.
type Token [sha256.Size]byte

// TokenOf returns the digest of a token.
func TokenOf(token string) Token { return sha256.Sum256([]byte(token)) }

// Quota bounds what one client can have in the service at once. Zero means that only the bounds of the service apply.
type Quota struct {
	Calls    int   // calls without an answer
	Running  int   // calls that run
	Sessions int   // sessions that are open
	Bytes    int64 // of requests that are read, and of calls that wait; at least rpc.MostMessage
}

// The names of the bounds, as in the file of clients.
const (
	limitCalls    = "calls"
	limitRunning  = "running"
	limitSessions = "sessions"
	limitBytes    = "queue_mb"
)

// defaultClient is the name of the client whose token is the only one, or that needs none.
const defaultClient = "default"

// client is the state of a Client. It outlives changes of tokens and quota.
type client struct {
	name  string
	quota atomic.Pointer[quota]
	lane  lane // guarded by the queue's lock

	log     *slog.Logger
	calls   atomic.Int64 // accepted and not answered
	counts  clientCounts
	notices notices
}

// quota is a Quota in force. What was acquired from it is released to it, even if another one has replaced it.
type quota struct {
	Quota
	calls *semaphore.Weighted // nil means no bound
	// bytes of bodies, of decoded requests, and of calls that wait; nil means no bound
	bodies, decoded, queued *semaphore.Weighted
}

func newQuota(q Quota) *quota {
	out := &quota{Quota: q}
	if q.Calls > 0 {
		out.calls = semaphore.NewWeighted(int64(q.Calls))
	}
	if q.Bytes > 0 {
		out.bodies, out.decoded, out.queued = semaphore.NewWeighted(q.Bytes), semaphore.NewWeighted(q.Bytes),
			semaphore.NewWeighted(q.Bytes)
	}
	return out
}

func newClient(name string, q Quota, log *slog.Logger) *client {
	c := &client{name: name, log: log}
	c.quota.Store(newQuota(q))
	return c
}

// wait acquires n of a bounded amount, and waits while the client has as much as it may.
func (c *client) wait(ctx context.Context, of *semaphore.Weighted, n int64, limit string) error {
	if of == nil || of.TryAcquire(n) {
		return nil
	}
	c.counts.limit(limit)
	return of.Acquire(ctx, n)
}

func giveBack(to *semaphore.Weighted, n int64) {
	if to != nil {
		to.Release(n)
	}
}

// release says that the client has one call less.
func (c *client) release(q *quota) {
	c.calls.Add(-1)
	giveBack(q.calls, 1)
}

// admit returns an error if the client has as many calls as it may.
func (c *client) admit() error {
	q := c.quota.Load()
	if q.calls == nil || q.calls.TryAcquire(1) {
		giveBack(q.calls, 1)
		return nil
	}
	return c.over(limitCalls, int64(q.Calls))
}

// over counts and logs a request beyond a limit, and returns its error.
func (c *client) over(limit string, most int64) error {
	c.counts.limit(limit)
	if refusals, due := c.notices.due(limit, time.Now()); due {
		c.log.Warn("refused a client over its quota", "client", c.name, "limit", limit, "most", most,
			"refusals", refusals)
	}
	return fmt.Errorf("%w: client %q has reached its limit: %s is %d", rpc.ErrOverQuota, c.name, limit, most)
}

// clients knows who may use the service. Safe for concurrent use.
type clients struct {
	queueBytes int64
	log        *slog.Logger

	mu          sync.RWMutex
	anyone      *client // not nil if no token is needed
	of          map[string]*client
	credentials []credential
}

type credential struct {
	token  Token
	client *client
}

// set replaces the clients. One that keeps its name keeps its calls and sessions.
func (c *clients) set(all []Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.of
	c.of, c.credentials, c.anyone = map[string]*client{}, nil, nil
	for _, one := range all {
		if one.Quota.Bytes == 0 && len(all) > 1 {
			one.Quota.Bytes = c.queueBytes / int64(len(all))
		}
		if one.Quota.Bytes > 0 {
			one.Quota.Bytes = max(one.Quota.Bytes, rpc.MostMessage)
		}
		known := before[one.Name]
		switch {
		case known == nil:
			known = newClient(one.Name, one.Quota, c.log)
		case known.quota.Load().Quota != one.Quota:
			known.quota.Store(newQuota(one.Quota))
		}
		c.of[one.Name] = known
		for _, t := range one.Tokens {
			c.credentials = append(c.credentials, credential{t, known})
		}
	}
	if len(c.credentials) == 0 {
		if c.anyone = before[defaultClient]; c.anyone == nil {
			c.anyone = newClient(defaultClient, Quota{}, c.log)
		}
		c.of = map[string]*client{defaultClient: c.anyone}
	}
}

// find returns the client whose token an Authorization header bears; nil if there is none. It takes the same time for
// every token.
func (c *clients) find(authorization string) (found *client) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	if c.anyone != nil {
		return c.anyone
	}
	token, bears := strings.CutPrefix(authorization, "Bearer ")
	digest := TokenOf(token)
	for _, known := range c.credentials {
		if subtle.ConstantTimeCompare(digest[:], known.token[:]) == 1 && bears {
			found = known.client
		}
	}
	return found
}

// all returns the clients in no order.
func (c *clients) all() (out []*client) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	for _, one := range c.of {
		out = append(out, one)
	}
	return out
}

// SetClients replaces who may use the service. Calls and sessions that are open stay. A stream whose token is no longer
// valid ends with its next request. Without clients everyone may use the service.
func (s *Service) SetClients(all []Client) {
	s.clients.set(all)
	s.queue.wake() // a client may run more than before
}

// auditStranger logs that a request bore no valid token, without the token.
func (s *Service) auditStranger(path, remote string) {
	if refusals, due := s.strangers.due("", time.Now()); due {
		s.o.Log.Warn("refused a request without a valid token", "path", path, "address", remote, "refusals", refusals)
	}
}

type clientKey struct{}

// as returns a context in which the client asks.
func as(ctx context.Context, c *client) context.Context {
	return context.WithValue(ctx, clientKey{}, c)
}

// asking returns the client that asks.
func asking(ctx context.Context) *client {
	c, _ := ctx.Value(clientKey{}).(*client)
	return c
}

// notices bounds how often the log repeats that requests are refused: once a second for each reason.
type notices struct {
	mu   sync.Mutex
	last map[string]time.Time
	left map[string]int // refusals since then
}

// due counts a refusal. If it is to be logged, it returns how many refusals that stands for.
func (n *notices) due(reason string, now time.Time) (refusals int, due bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last, n.left = map[string]time.Time{}, map[string]int{}
	}
	n.left[reason]++
	if now.Sub(n.last[reason]) < time.Second {
		return 0, false
	}
	refusals = n.left[reason]
	n.last[reason], n.left[reason] = now, 0
	return refusals, true
}
