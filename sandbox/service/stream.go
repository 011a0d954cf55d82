package service

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// heartbeat is how often a stream sends the state of the node.
const heartbeat = 2 * time.Second

// stream is the server's half of one Run stream.
type stream struct {
	service  *Service
	receiver receiver

	mu    sync.Mutex
	ready []answer       // answers to send
	open  map[string]int // key → how many answers are still due
	wake  chan struct{}  // wakes the sender; holds one item
}

// grpcServer implements the protocol's server.
type grpcServer struct {
	rpc.UnimplementedSandboxServer
	service *Service
}

// Run reads tasks while there is room for them, and sends answers as they arrive.
func (g grpcServer) Run(conn rpc.Sandbox_RunServer) error {
	s := &stream{service: g.service, open: map[string]int{}, wake: make(chan struct{}, 1)}
	ctx, cancel := context.WithCancel(conn.Context())
	s.receiver.client, s.receiver.deliver = asking(ctx), s.deliver
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		sent <- rescue.Do(func() error { return s.send(ctx, conn) })
		cancel() // if the client cannot get answers, its tasks are not read either
	}()
	err := s.receive(ctx, conn)
	if err == nil { // the client has closed its half but still gets its answers
		err = s.settled(ctx)
	}
	cancel()
	s.abandon()
	if failed := <-sent; failed != nil && err == nil {
		err = failed
	}
	return err
}

// receive accepts tasks until the client closes its half.
func (s *stream) receive(ctx context.Context, conn rpc.Sandbox_RunServer) error {
	for {
		in, err := conn.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		err = s.take(ctx, in)
		s.service.decoding.release(in)
		if err != nil {
			return err
		}
	}
}

// take accepts the tasks of one request.
func (s *stream) take(ctx context.Context, in *rpc.RunRequest) error {
	if len(in.GetTasks()) > rpc.MostTasks {
		return status.Errorf(codes.InvalidArgument, "tasks: there are %d in one request, at most %d are taken",
			len(in.GetTasks()), rpc.MostTasks)
	}
	for _, key := range in.GetCancel() {
		s.forget(key)
		s.service.leave(&s.receiver, key)
	}
	for _, t := range in.GetTasks() {
		s.expect(t.GetKey())
		r := request{key: t.GetKey(), call: t.GetCall().Sandbox(), life: time.Duration(t.GetQueueLifeNs())}
		if err := s.service.submit(ctx, &s.receiver, r); err != nil {
			return status.FromContextError(err).Err()
		}
	}
	return nil
}

func (s *stream) expect(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.open[key]++
}

func (s *stream) forget(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.open, key)
}

// deliver stores an answer for the sender.
func (s *stream) deliver(a answer) {
	s.mu.Lock()
	s.ready = append(s.ready, a)
	s.mu.Unlock()
	s.wakeSender()
}

func (s *stream) wakeSender() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// settled waits until every answer that is due has been sent.
func (s *stream) settled(ctx context.Context) error {
	every := time.NewTicker(tick / 10)
	defer every.Stop()
	for {
		s.mu.Lock()
		left := len(s.open)
		s.mu.Unlock()
		if left == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return status.FromContextError(ctx.Err()).Err()
		case <-every.C:
		}
	}
}

// abandon ends the receiver: its client no longer reads.
func (s *stream) abandon() {
	s.receiver.gone.Store(true)
	s.mu.Lock()
	left := make([]string, 0, len(s.open))
	for key := range s.open {
		left = append(left, key)
	}
	s.mu.Unlock()
	for _, key := range left {
		s.service.leave(&s.receiver, key)
	}
	s.service.queue.wake()
}

// send sends answers, at most rpc.MostTasks at a time, and the state of the node.
func (s *stream) send(ctx context.Context, conn rpc.Sandbox_RunServer) error {
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	if err := conn.Send(&rpc.RunResponse{Node: s.service.node()}); err != nil {
		return err
	}
	draining := s.service.draining
	for {
		out := s.batch()
		if out == nil {
			select {
			case <-ctx.Done():
				return nil
			case <-s.wake:
				continue
			case <-draining:
				draining = nil
				out = &rpc.RunResponse{Node: s.service.node()}
			case <-beat.C:
				out = &rpc.RunResponse{Node: s.service.node()}
			}
		}
		if err := conn.Send(out); err != nil {
			return err
		}
		s.sent(out.GetAnswers())
	}
}

// mostSent is roughly how many bytes of answers one response contains.
const mostSent = 1 << 20

// batch removes the answers that are ready and returns them; nil if there are none.
func (s *stream) batch() *rpc.RunResponse {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.ready) == 0 {
		return nil
	}
	out, n, size := &rpc.RunResponse{}, 0, int64(0)
	for n < len(s.ready) && n < rpc.MostTasks && size < mostSent {
		size += s.ready[n].size()
		out.Answers = append(out.Answers, toWire(s.ready[n]))
		n++
	}
	clear(s.ready[:n])
	s.ready = s.ready[n:]
	s.unhold(size)
	return out
}

// unhold counts answers as read. If the receiver was full, its jobs can run again.
func (s *stream) unhold(size int64) {
	before := s.receiver.held.Load()
	after := s.receiver.held.Add(-size)
	if before > mostHeld && after <= mostHeld {
		s.service.queue.wake()
	}
}

// sent counts the keys whose answers have been sent.
func (s *stream) sent(out []*rpc.Answer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range out {
		if s.open[a.Key]--; s.open[a.Key] <= 0 {
			delete(s.open, a.Key)
		}
	}
}

func toWire(a answer) *rpc.Answer {
	out := &rpc.Answer{Key: a.key, Trace: a.trace}
	if a.err != nil {
		out.Outcome = &rpc.Answer_Failure{Failure: rpc.FromError(a.err)}
		return out
	}
	out.Outcome = &rpc.Answer_Result{Result: rpc.FromResult(a.result)}
	return out
}

// node returns the state of this node.
func (s *Service) node() *rpc.Node {
	jobs, _ := s.queue.depth()
	return &rpc.Node{Version: rpc.Version, Workers: uint32(s.workers), Queued: uint64(jobs), Draining: s.Draining(),
		Tier: string(s.tier())}
}
