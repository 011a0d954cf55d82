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

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// errNodeLost: the connection ended under a call.
var errNodeLost = fmt.Errorf("%w: lost the sandbox service", sandbox.ErrInfrastructure)

// node is one service. The client's lock guards what is below mu's line.
type node struct {
	client  *Client
	address string
	conn    *grpc.ClientConn
	wake    chan struct{} // of the sender; holds one

	// mu's line
	flights   map[string]*flight // that it has, by their keys
	outbox    []*flight          // of those, what has not been sent
	cancelled []string           // keys to be told
	ready     bool               // its stream lives
	draining  bool
	refused   bool // trying again cannot help
	fault     error
	workers   int
	tier      sandbox.Tier // of its isolation; "" until it has said so
	service   float64      // seconds that a call runs there: a moving mean; 0 unknown
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
			Backoff: backoff.Config{BaseDelay: 50 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 250 * time.Millisecond}}),
	)
	if err != nil {
		return nil, fmt.Errorf("address of a sandbox service: %w", err)
	}
	return &node{client: c, address: address, conn: conn, wake: make(chan struct{}, 1), flights: map[string]*flight{}, workers: 1}, nil
}

// takes reports whether calls may be given to the node.
func (n *node) takes() bool { return n.ready && !n.draining && !n.weak() }

// weak reports whether the node isolates calls less than the client holds its nodes to.
func (n *node) weak() bool {
	least := n.client.least
	return n.ready && least != "" && !n.tier.AtLeast(least)
}

// load is about how long a call more would take there, in seconds: those in flight and it, one after
// another on each worker. A node of which nothing is known counts as fast, to be tried.
func (n *node) load() float64 {
	service := n.service
	if service == 0 {
		service = 1e-3
	}
	return float64(len(n.flights)+1) * service / float64(max(n.workers, 1))
}

// take puts a flight on the node. The caller holds the lock.
func (n *node) take(f *flight) {
	n.flights[f.key] = f
	n.outbox = append(n.outbox, f)
	f.on = append(f.on, n)
	f.sent = time.Now()
	n.rouse()
}

// rouse has the sender look.
func (n *node) rouse() {
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

// live keeps a stream to the node until the client is closed.
func (n *node) live() {
	const first, most = 20 * time.Millisecond, 250 * time.Millisecond
	wait := first
	for n.client.life.Err() == nil {
		met, err := n.stream()
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

// lost takes what was in flight off the node.
func (n *node) lost(err error) {
	c := n.client
	c.mu.Lock()
	defer c.mu.Unlock()
	n.ready, n.fault, n.leave = false, plainly(err), nil
	n.refused = status.Code(err) == codes.Unauthenticated || errors.Is(err, errVersion)
	if len(n.flights) > 0 {
		slog.Warn("lost a sandbox service", "address", n.address, "calls", len(n.flights), "error", n.fault)
	}
	had, unsent := n.flights, map[string]bool{}
	for _, f := range n.outbox {
		unsent[f.key] = true
	}
	n.flights, n.outbox, n.cancelled = map[string]*flight{}, nil, nil
	for key, f := range had {
		f.off(n)
		if unsent[key] && !f.over && len(f.on) == 0 {
			c.pend(f) // it has not been tried
			continue
		}
		c.failed(f, errNodeLost) // an address has no place in what becomes of a call
	}
	c.survey()
	c.dispatch()
}

// plainly leaves gRPC's words out of an error.
func plainly(err error) error {
	if s, ok := status.FromError(err); ok && s.Code() != codes.OK {
		return errors.New(s.Message())
	}
	if err == nil {
		return errors.New("it ended the stream")
	}
	return err
}

// answered is what became of a call.
func (n *node) answered(a *rpc.Answer, now time.Time) {
	f := n.flights[a.GetKey()]
	if f == nil {
		return // it has landed, or was given up
	}
	delete(n.flights, a.GetKey())
	f.off(n)
	if failure := a.GetFailure(); failure != nil {
		err := failure.Err()
		if errors.Is(err, rpc.ErrDraining) {
			n.draining = true
			n.client.survey()
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
	n.client.pace.landed(now.Sub(f.sent), n.client.o.Hedges)
	n.client.land(f, result, nil)
}
