package service

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// Session runs the cells of one session, which ends with the stream.
func (g grpcServer) Session(conn rpc.Sandbox_SessionServer) error {
	s := g.service
	ctx, cancel := context.WithCancel(conn.Context())
	defer cancel()
	defer context.AfterFunc(s.life, cancel)()
	in, err := conn.Recv()
	if err != nil {
		return ended(err)
	}
	open := in.GetOpen()
	s.decoding.release(in)
	session, err := s.openSession(ctx, open.GetPackages(), open.GetLimits().Sandbox())
	if err != nil {
		return conn.Send(failed(err))
	}
	defer s.sessions.finish(asking(ctx))
	defer session.Close()
	if err := conn.Send(&rpc.SessionResponse{Outcome: &rpc.SessionResponse_Opened{Opened: &rpc.Opened{}}}); err != nil {
		return err
	}
	cells := g.cells(ctx, conn)
	idle := time.NewTimer(s.o.SessionIdle)
	defer idle.Stop()
	for {
		select {
		case cell, more := <-cells:
			if !more {
				return nil
			}
			if err := conn.Send(s.cell(ctx, session, cell)); err != nil {
				return err
			}
			idle.Reset(s.o.SessionIdle)
		case <-idle.C:
			return nil
		}
	}
}

// cells returns the stream's cells until the stream ends.
func (g grpcServer) cells(ctx context.Context, conn rpc.Sandbox_SessionServer) <-chan sandbox.Call {
	cells := make(chan sandbox.Call)
	go func() {
		defer close(cells)
		for {
			in, err := conn.Recv()
			if err != nil {
				return
			}
			select {
			case cells <- in.GetCell().Sandbox(): // received once the previous cell has ended
				g.service.decoding.release(in)
			case <-ctx.Done():
				g.service.decoding.release(in)
				return
			}
		}
	}()
	return cells
}

func (s *Service) openSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	if s.Draining() {
		return nil, rpc.ErrDraining
	}
	return s.sessions.start(ctx, asking(ctx), packages, limits)
}

// cell runs one cell and returns its outcome as a message.
func (s *Service) cell(ctx context.Context, session sandbox.Session, cell sandbox.Call) *rpc.SessionResponse {
	var result sandbox.Result
	began := time.Now()
	err := cell.Validate()
	if err == nil {
		err = rescue.Do(func() (err error) {
			result, err = session.Run(ctx, cell)
			return err
		})
	}
	a := answer{trace: cell.Trace, result: result, err: err}
	s.metrics.cell(asking(ctx), a, time.Since(began))
	s.log(cell, a)
	if err != nil {
		return failed(err)
	}
	return &rpc.SessionResponse{Outcome: &rpc.SessionResponse_Result{Result: rpc.FromResult(result)}}
}

func failed(err error) *rpc.SessionResponse {
	return &rpc.SessionResponse{Outcome: &rpc.SessionResponse_Failure{Failure: rpc.FromError(err)}}
}

// ended returns nil for the normal end of a stream.
func ended(err error) error {
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
