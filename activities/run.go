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

	"github.com/ropewalk/ropewalk/activities/api"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// beat is how often a running activity tells the server that its worker is alive.
const beat = 2 * time.Second

// progress is what an activity's heartbeat shows: done of total.
type progress struct {
	done, total atomic.Int64
	use         atomic.Pointer[func() *api.DeviceUse] // how the engine uses its devices; nil: no measurement
}

// details are the details of a heartbeat.
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

// tracked runs body under heartbeats and measures it. Errors that a retry cannot fix become non-retryable, with their
// kind. Outside Temporal, where CheckRun runs stages, there are neither heartbeats nor attempts.
func tracked(ctx context.Context, t *api.Timing, body func(ctx context.Context, p *progress) error) error {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	started := time.Now()
	t.Start, t.Host = started.UnixMicro(), host
	p := &progress{}
	if whole := enclosing(ctx); whole != nil {
		p, t.Attempt = whole, attemptOf(ctx)
	} else if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		t.Attempt, t.Queue = int(info.Attempt), max(0, started.Sub(info.ScheduledTime).Seconds())
		defer heartbeats(ctx, p)()
	}
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

// classify makes errors that a retry cannot fix non-retryable and gives them their kind. Other errors stay retryable.
func classify(err error) error {
	var problems recipes.Problems
	var refused *refusedError
	var unfit *refusal.Error
	var bad badinput.Error
	var nonFinite *policy.NonFiniteError
	var device *policy.DeviceError
	var decided *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	// Already classified by a stage that this stage has run within itself.
	case errors.As(err, &decided) && decided.NonRetryable():
		return permanent(decided.Type(),
			errors.New(strings.Replace(err.Error(), decided.Error(), decided.Message(), 1)))
	case errors.As(err, &problems):
		return permanent(api.FailBadInput, err)
	case errors.As(err, &refused):
		return permanent(refused.kind, err)
	case errors.As(err, &unfit):
		return permanent(refusals[unfit.Kind], err)
	case errors.As(err, &bad):
		return permanent(api.FailBadInput, err)
	case errors.As(err, &nonFinite):
		return permanent(api.FailNonFinite, err)
	case errors.Is(err, policy.ErrOutOfMemory): // others may hold the device's memory at the moment
		return temporal.NewApplicationError(err.Error(), api.FailMemory)
	case errors.Is(err, policy.ErrBadRequest):
		return permanent(api.FailRefused, err)
	case errors.As(err, &device): // another device, or the same device after a reset, may work
		return temporal.NewApplicationError(err.Error(), device.Kind)
	case errors.Is(err, commit.ErrDamaged), errors.Is(err, schema.ErrCorrupt):
		return permanent(api.FailCorrupt, err)
	case errors.Is(err, store.ErrNoBucket), errors.Is(err, store.ErrCredentials), errors.Is(err, store.ErrTooLarge):
		return permanent(api.FailBadInput, err)
	}
	return err
}

// refusals are the kinds of failure for the refusals of domain packages.
var refusals = map[refusal.Kind]string{refusal.Corrupt: api.FailCorrupt, refusal.Unusable: api.FailRefused}

// ownLimit separates the end of the activity from other deadlines and cancellations. If an engine or a store gives up
// after its own limit, or one of its calls is cancelled, Temporal would mistake the error for the activity's deadline
// and not retry.
func ownLimit(ctx context.Context, err error) error {
	if ctx.Err() == nil && (errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)) {
		return temporal.NewApplicationError(err.Error(), "")
	}
	return err
}

func permanent(kind string, err error) error {
	return temporal.NewNonRetryableApplicationError(err.Error(), kind, nil)
}

// refusedError is an input that a stage cannot work on; a retry does not help.
type refusedError struct{ kind, text string }

func (e *refusedError) Error() string { return e.text }

func refuse(kind, format string, args ...any) error {
	return &refusedError{kind: kind, text: fmt.Sprintf(format, args...)}
}
