package service

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// heartbeat is how often a stream says how the node is.
const heartbeat = 2 * time.Second

// stream is the server's half of one Run stream.
type stream struct {
	service *Service
	lane    lane

	mu    sync.Mutex
	ready []answer       // not yet sent
	open  map[string]int // keys whose answers are due, and how many
	wake  chan struct{}  // of the sender; holds one
}

// grpcServer is the protocol's server.
type grpcServer struct {
	rpc.UnimplementedSandboxServer
	service *Service
}

// Run reads tasks while there is room for them, and sends answers as they come.
func (g grpcServer) Run(conn rpc.Sandbox_RunServer) error {
	s := &stream{service: g.service, open: map[string]int{}, wake: make(chan struct{}, 1)}
	s.lane.deliver = s.deliver
	ctx, cancel := context.WithCancel(conn.Context())
	defer cancel()
	sent := make(chan error, 1)
	go func() {
		sent <- s.send(ctx, conn)
		cancel() // a client that cannot be told anything is not listened to either
	}()
	err := s.receive(ctx, conn)
	if err == nil { // the client has closed its half: what it asked for is still answered
		err = s.settled(ctx)
	}
	cancel()
	s.abandon()
	if failed := <-sent; failed != nil && err == nil {
		err = failed
	}
	return err
}

// receive takes tasks in until the client closes its half.
func (s *stream) receive(ctx context.Context, conn rpc.Sandbox_RunServer) error {
	for {
		in, err := conn.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if len(in.GetTasks()) > rpc.MostTasks {
			return status.Errorf(codes.InvalidArgument, "tasks: there are %d in one request, at most %d are taken", len(in.GetTasks()), rpc.MostTasks)
		}
		for _, key := range in.GetCancel() {
			s.forget(key)
			s.service.leave(&s.lane, key)
		}
		for _, t := range in.GetTasks() {
			s.expect(t.GetKey())
			r := request{key: t.GetKey(), call: t.GetCall().Sandbox(), life: time.Duration(t.GetQueueLifeNs())}
			if err := s.service.submit(ctx, &s.lane, r); err != nil {
				return status.FromContextError(err).Err()
			}
		}
	}
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

// deliver keeps an answer for the sender.
func (s *stream) deliver(a answer) {
	s.mu.Lock()
	s.ready = append(s.ready, a)
	s.mu.Unlock()
	s.rouse()
}

func (s *stream) rouse() {
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

// abandon ends the lane: nobody reads its answers.
func (s *stream) abandon() {
	s.lane.gone.Store(true)
	s.mu.Lock()
	left := make([]string, 0, len(s.open))
	for key := range s.open {
		left = append(left, key)
	}
	s.mu.Unlock()
	for _, key := range left {
		s.service.leave(&s.lane, key)
	}
	s.service.queue.wake()
}

// send tells answers, at most rpc.MostTasks at a time, and how the node is.
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

// mostSent is how many bytes of answers, about, go into one response.
const mostSent = 1 << 20

// batch takes what is ready; nil if nothing is.
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

// unhold counts answers as taken; a lane that was full gets its turn again.
func (s *stream) unhold(size int64) {
	before := s.lane.held.Load()
	after := s.lane.held.Add(-size)
	if before > mostHeld && after <= mostHeld {
		s.service.queue.wake()
	}
}

// sent counts keys whose answers have gone out.
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

// node says how this node is.
func (s *Service) node() *rpc.Node {
	jobs, _ := s.queue.depth()
	return &rpc.Node{Version: rpc.Version, Workers: uint32(s.workers), Queued: uint64(jobs), Draining: s.Draining(), Tier: string(s.tier())}
}
