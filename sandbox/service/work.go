package service

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// work runs one job after another, until the queue is closed or a job has been set aside.
func (s *Service) work() {
	for {
		j := s.queue.pop()
		if j == nil {
			return
		}
		began := time.Now()
		if began.After(j.expires) {
			s.queue.ran(j)
			s.settle(j, answer{err: tooLong(j)})
			continue
		}
		// When a call is set aside, another worker takes over, if there is room for the job in the queue's bytes.
		aside := false
		ctx := sandbox.WithAside(s.life, func() {
			if s.queue.tryReserve(j.size) {
				aside = true
				s.tasks.Go(s.work)
			}
		})
		result, err := s.run(ctx, j.call)
		s.queue.ran(j)
		waited := began.Sub(j.arrived)
		result.Timing.Queue += waited
		// before settle, so that the metrics count a call before its client has the answer
		s.metrics.served(waited, time.Since(began))
		s.settle(j, answer{result: result, err: err})
		if aside {
			s.queue.releaseRoom(j.size)
			return
		}
	}
}

// run runs one call. It returns an error if there is no verdict.
func (s *Service) run(ctx context.Context, call sandbox.Call) (sandbox.Result, error) {
	var results []sandbox.Result
	err := rescue.Do(func() (err error) {
		results, err = s.o.Executor.Run(ctx, []sandbox.Call{call})
		return err
	})
	var single sandbox.CallErrors
	switch {
	case errors.As(err, &single) && len(single) == 1 && single[0] != nil:
		return sandbox.Result{}, single[0]
	case err != nil:
		return sandbox.Result{}, err
	case len(results) != 1:
		return sandbox.Result{}, fmt.Errorf("%w: %d results of one call", sandbox.ErrInfrastructure, len(results))
	case results[0].Status.Breakage():
		return sandbox.Result{}, fmt.Errorf("%w: the executor gave status %q", sandbox.ErrInfrastructure,
			results[0].Status)
	}
	return results[0], nil
}

// settle sends a job's answer.
func (s *Service) settle(j *job, a answer) {
	a.key, a.trace = j.key, j.call.Trace
	j.receiver.client.release(j.quota) // a client that has the answer may send the next call
	s.answers.settle(j, a, time.Now())
	s.metrics.answered(j.receiver.client, a)
	s.log(j.call, a)
	s.served.Done()
}

// log writes one answer to the log. It includes code and output only if the options ask for that.
func (s *Service) log(call sandbox.Call, a answer) {
	level := slog.LevelDebug
	fields := []slog.Attr{slog.String("key", a.key), slog.String("trace", a.trace)}
	if a.err != nil {
		level = slog.LevelWarn
		fields = append(fields, slog.String("kind", rpc.FromError(a.err).Kind),
			slog.String("error", cut(a.err.Error())))
	} else {
		t := a.result.Timing
		fields = append(fields, slog.String("status", string(a.result.Status)), slog.Duration("queue", t.Queue),
			slog.Duration("wall", t.Wall))
	}
	if s.o.LogCode {
		level = max(level, slog.LevelInfo)
		fields = append(fields, slog.String("code", call.Code), slog.String("stdin", call.Stdin),
			slog.String("stdout", a.result.Stdout), slog.String("stderr", a.result.Stderr))
	}
	s.o.Log.LogAttrs(s.life, level, "call", fields...)
}

// cut shortens an error's text for the log.
func cut(text string) string {
	const most = 500
	if len(text) <= most {
		return text
	}
	return text[:most] + "…"
}
