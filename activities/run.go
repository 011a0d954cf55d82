package activities

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/activities/wire"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// beat is how often an executing activity tells the server that its worker lives.
const beat = 2 * time.Second

// progress is what an activity's heartbeat shows: done of total.
type progress struct {
	done, total atomic.Int64
	use         atomic.Pointer[func() *wire.DeviceUse] // what the engine uses of its devices; nil: nothing measures it
}

// details are what a heartbeat tells.
func (p *progress) details() []any {
	out := []any{p.done.Load(), p.total.Load()}
	if use := p.use.Load(); use != nil {
		out = append(out, (*use)())
	}
	return out
}

func (p *progress) set(done, total int) {
	p.done.Store(int64(done))
	p.total.Store(int64(total))
}

// tracked runs body under heartbeats and measures it. Errors that no retry mends become
// non-retryable with their kind.
func tracked(ctx context.Context, t *wire.Timing, body func(ctx context.Context, p *progress) error) error {
	info := activity.GetInfo(ctx)
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	started := time.Now()
	t.Start, t.Attempt, t.Host = started.UnixMicro(), int(info.Attempt), host
	t.Queue = max(0, started.Sub(info.ScheduledTime).Seconds())
	p := &progress{}
	stop := heartbeats(ctx, p)
	defer stop()
	err = body(ctx, p)
	t.End = time.Now().UnixMicro()
	return ownLimit(ctx, classify(err))
}

// heartbeats reports progress until the returned function is called.
func heartbeats(ctx context.Context, p *progress) (stop func()) {
	quit := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		tick := time.NewTicker(beat)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				activity.RecordHeartbeat(ctx, p.details()...)
			case <-quit:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return func() { close(quit); <-ended }
}

// classify gives errors that no retry mends their kind; all others stay retryable.
func classify(err error) error {
	var problems recipes.Problems
	var refused *refusedError
	var nonFinite *policy.NonFiniteError
	var device *policy.DeviceError
	var decided *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &decided) && decided.NonRetryable(): // by a stage that this one has run within itself
		return permanent(decided.Type(), errors.New(strings.Replace(err.Error(), decided.Error(), decided.Message(), 1)))
	case errors.As(err, &problems):
		return permanent(wire.FailBadInput, err)
	case errors.As(err, &refused):
		return permanent(refused.kind, err)
	case errors.As(err, &nonFinite):
		return permanent(wire.FailNonFinite, err)
	case errors.Is(err, policy.ErrOutOfMemory): // others may hold the device's memory for now
		return temporal.NewApplicationError(err.Error(), wire.FailMemory)
	case errors.Is(err, policy.ErrBadRequest):
		return permanent(wire.FailRefused, err)
	case errors.As(err, &device): // another device, or the same one after a reset, may do
		return temporal.NewApplicationError(err.Error(), device.Kind)
	case errors.Is(err, commit.ErrDamaged), errors.Is(err, schema.ErrCorrupt):
		return permanent(wire.FailCorrupt, err)
	case errors.Is(err, store.ErrNoBucket), errors.Is(err, store.ErrCredentials):
		return permanent(wire.FailBadInput, err)
	}
	return err
}

// ownLimit tells an activity's own end from another's: where an engine or a store gave up after a limit of its own, or a call of
// theirs was called off, Temporal would take that for the activity's deadline and not try again.
func ownLimit(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return temporal.NewApplicationError(err.Error(), "")
	}
	return err
}

func permanent(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// refusedError is an input that a stage cannot work on, whoever tries again.
type refusedError struct{ kind, text string }

func (e *refusedError) Error() string { return e.text }

func refuse(kind, format string, args ...any) error {
	return &refusedError{kind: kind, text: fmt.Sprintf(format, args...)}
}
