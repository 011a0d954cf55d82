package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// errNodeLost means that the connection ended during a call.
var errNodeLost = fmt.Errorf("%w: lost the sandbox service", sandbox.ErrInfrastructure)

// node is one service. The client's lock guards the fields below the line.
type node struct {
	client  *Client
	address string
	conn    *grpc.ClientConn
	wake    chan struct{} // wakes the sender; holds one item

	// Guarded by the client's lock:
	calls     map[string]*outstanding // the calls that it has, by key
	outbox    []*outstanding          // those of them that have not been sent
	cancelled []string                // keys of calls to cancel
	ready     bool                    // its stream is open
	draining  bool
	refused   bool // trying again is useless
	fault     error
	workers   int
	tier      sandbox.Tier // its isolation; "" until it has reported it
	service   float64      // seconds that a call takes there, as a moving mean; 0 if unknown
	leave     context.CancelFunc
}

func (c *Client) newNode(address string) (*node, error) {
	secure := insecure.NewCredentials()
	if c.o.TLS != nil {
		secure = credentials.NewTLS(c.o.TLS)
	}
	conn, err := grpc.NewClient("passthrough:///"+address,
		grpc.WithTransportCredentials(secure), grpc.WithNoProxy(),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30), grpc.MaxCallSendMsgSize(rpc.MostMessage)),
		grpc.WithInitialWindowSize(4<<20), grpc.WithInitialConnWindowSize(16<<20),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, Timeout: 5 * time.Second}),
		grpc.WithConnectParams(grpc.ConnectParams{MinConnectTimeout: 2 * time.Second,
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2,
				MaxDelay: 250 * time.Millisecond}}),
	)
	if err != nil {
		return nil, fmt.Errorf("address of a sandbox service: %w", err)
	}
	return &node{client: c, address: address, conn: conn, wake: make(chan struct{}, 1),
		calls: map[string]*outstanding{}, workers: 1}, nil
}

// takes reports whether the node may get calls.
func (n *node) takes() bool { return n.ready && !n.draining && !n.weak() }

// weak reports whether the node isolates calls more weakly than the client requires.
func (n *node) weak() bool {
	least := n.client.least
	return n.ready && least != "" && !n.tier.AtLeast(least)
}

// load is roughly how many seconds another call would take there: the calls that the node has and this one, one after
// another on each worker. A node without measurements counts as fast, so that it is tried.
func (n *node) load() float64 {
	service := n.service
	if service == 0 {
		service = 1e-3
	}
	return float64(len(n.calls)+1) * service / float64(max(n.workers, 1))
}

// take gives a call to the node. The caller holds the lock.
func (n *node) take(f *outstanding) {
	n.calls[f.key] = f
	n.outbox = append(n.outbox, f)
	f.on = append(f.on, n)
	f.sent = time.Now()
	n.wakeSender()
}

// wakeSender makes the sender check for tasks.
func (n *node) wakeSender() {
	select {
	case n.wake <- struct{}{}:
	default:
	}
}

// authorized adds the token.
func (n *node) authorized(ctx context.Context) context.Context {
	if token := n.client.o.Token; token != "" {
		return metadata.AppendToOutgoingContext(ctx, "authorization", "Bearer "+token)
	}
	return ctx
}

// live keeps a stream to the node open until the client is closed.
func (n *node) live() {
	const first, most = 20 * time.Millisecond, 250 * time.Millisecond
	wait := first
	for n.client.life.Err() == nil {
		met := false
		err := rescue.Do(func() (err error) {
			met, err = n.stream()
			return err
		})
		if met {
			wait = first
		}
		n.lost(err)
		select {
		case <-time.After(wait):
		case <-n.client.life.Done():
		}
		wait = min(2*wait, most)
	}
	n.lost(errClosed)
}

// lost takes all calls back from a node whose stream has ended.
func (n *node) lost(err error) {
	c := n.client
	c.mu.Lock()
	defer c.mu.Unlock()
	n.ready, n.fault, n.leave = false, plainly(err), nil
	n.refused = status.Code(err) == codes.Unauthenticated || errors.Is(err, errVersion)
	if len(n.calls) > 0 {
		slog.Warn("lost a sandbox service", "address", n.address, "calls", len(n.calls), "error", n.fault)
	}
	had, unsent := n.calls, map[string]bool{}
	for _, f := range n.outbox {
		unsent[f.key] = true
	}
	n.calls, n.outbox, n.cancelled = map[string]*outstanding{}, nil, nil
	for key, f := range had {
		f.off(n)
		if unsent[key] && !f.over && len(f.on) == 0 {
			c.enqueue(f) // it has not been sent yet
			continue
		}
		c.failed(f, errNodeLost) // without the address, since a call's outcome must not contain one
	}
	c.updateReady()
	c.dispatch()
}

// plainly removes gRPC's prefix from an error.
func plainly(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return errors.New(s.Message())
	}
	if err == nil {
		return errors.New("it ended the stream")
	}
	return err
}

// answered handles the answer to a call.
func (n *node) answered(a *rpc.Answer, now time.Time) {
	f := n.calls[a.GetKey()]
	if f == nil {
		return // it has a result already, or was given up
	}
	delete(n.calls, a.GetKey())
	f.off(n)
	if failure := a.GetFailure(); failure != nil {
		err := failure.Err()
		if errors.Is(err, rpc.ErrDraining) {
			n.draining = true
			n.client.updateReady()
		}
		n.client.failed(f, err)
		return
	}
	result := a.GetResult().Sandbox()
	const weight = 0.1
	if wall := result.Timing.Wall.Seconds(); n.service == 0 {
		n.service = wall
	} else {
		n.service += weight * (wall - n.service)
	}
	n.client.latency.record(now.Sub(f.sent), n.client.o.Hedges)
	n.client.settle(f, result, nil)
}
