package runs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/workflows"
)

// pollEvery is how often a followed run is asked for its progress. An answer takes the server and a worker some
// milliseconds of the processors that the run needs, too.
const pollEvery = time.Second

// ParkedError ends the following of a run that waits for the user's decision; the run stays open.
type ParkedError struct{ Progress workflows.Progress }

// Error implements error.
func (e ParkedError) Error() string {
	return fmt.Sprintf("run %s is parked: %s", e.Progress.Run, e.Progress.Parked.Failures[0])
}

// Follow shows a run's steps in view until the run ends, and returns its result. The run itself goes on when ctx ends,
// and waits for the next command when the stack is lost. Unless stay is set, a run that parks ends Follow with a
// ParkedError.
func (s *Session) Follow(ctx context.Context, run string, view *ProgressView, stay bool) (workflows.TrainRunResult,
	error) {
	return follow[workflows.TrainRunResult](ctx, s, run, view, stay)
}

// FollowEvaluation is Follow for an evaluation of its own.
func (s *Session) FollowEvaluation(ctx context.Context, run string, view *ProgressView, stay bool,
) (workflows.EvaluateRunResult, error) {
	return follow[workflows.EvaluateRunResult](ctx, s, run, view, stay)
}

func follow[R any](ctx context.Context, s *Session, run string, view *ProgressView, stay bool) (R, error) {
	type outcome struct {
		result R
		err    error
	}
	var none R
	ended := make(chan outcome, 1)
	go func() {
		var o outcome
		o.err = s.Await(ctx, run, &o.result)
		ended <- o
	}()
	defer view.End()
	view.offer = func(p workflows.Progress) { s.beforeTraining(ctx, run, view, p) }
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for polls := 0; ; {
		select {
		case o := <-ended:
			if o.err == nil {
				_, _ = poll(ctx, s.Temporal, run, view)
			}
			return o.result, o.err
		case <-tick.C:
			p, err := poll(ctx, s.Temporal, run, view)
			if err == nil && p.Parked != nil && !stay {
				return none, ParkedError{p}
			}
			if polls++; err == nil && polls%workEvery == 0 {
				view.Working(Working(ctx, s.Temporal, p, time.Now()))
			}
			view.Quiet(err)
		case <-s.Lease.Done():
			return none, fmt.Errorf("%w; everything committed is kept: remove the cause, then "+
				"`ropewalk resume %s`", s.Lost(), run)
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}

// poll asks for the run's progress and shows what is new. A query can fail while a worker restarts or the run continues
// as new; the next poll then shows what this one missed.
func poll(ctx context.Context, c client.Client, run string, view *ProgressView) (workflows.Progress, error) {
	p, err := ProgressOf(ctx, c, run)
	if err != nil {
		slog.Debug("query progress", "run", run, "error", err)
		return p, err
	}
	view.Show(p)
	return p, nil
}

// Querier is the part of Temporal's client that asks workflows.
type Querier interface {
	// QueryWorkflow asks an execution of a workflow, the latest if execution is empty.
	QueryWorkflow(ctx context.Context, run, execution, query string, args ...any) (converter.EncodedValue, error)
}

// ProgressOf asks a run how far it is. A run that no worker answers for is an error within 5 s.
func ProgressOf(ctx context.Context, c Querier, run string) (workflows.Progress, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	var p workflows.Progress
	value, err := c.QueryWorkflow(ctx, run, "", workflows.QueryProgress)
	if err != nil {
		return p, err
	}
	return p, value.Get(&p)
}

// AwaitImport is Follow for an import, without a view.
func (s *Session) AwaitImport(ctx context.Context, run string, stay bool) (workflows.ReprocessResult, error) {
	return follow[workflows.ReprocessResult](ctx, s, run, NewProgressView(io.Discard, false), stay)
}

// Failure returns the part of a failed workflow's error that its author wrote.
func Failure(err error) error {
	if err == nil {
		return nil
	}
	var app *temporal.ApplicationError
	if errors.As(err, &app) {
		if app.Type() == api.FailBadInput {
			return badinput.Errorf("%s", app.Message())
		}
		return errors.New(app.Message())
	}
	var ended *temporal.TerminatedError
	if temporal.IsCanceledError(err) || errors.As(err, &ended) {
		return errors.New("the run was ended from outside; `ropewalk resume` starts it again from the last " +
			"committed stage")
	}
	return err
}
