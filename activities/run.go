package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/ropewalk/ropewalk/env/remote"
	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// beat is how often a running activity tells the server that its worker is alive.
const beat = 2 * time.Second

// progress is what an activity's heartbeat shows: done of total.
type progress struct {
	done, total atomic.Int64
	use         atomic.Pointer[func() *api.DeviceUse] // how the engine uses its devices; nil: no measurement
	capacity    atomic.Pointer[func() api.Capacity]   // of the sampler that generates; nil: none does
	flow        atomic.Pointer[func() api.ShardState] // how far a shard's episodes are; nil: they have not begun
}

// follow has heartbeats report how far a flow is, which began at the given time.
func (p *progress) follow(f *rollout.Flow, began time.Time) {
	state := func() api.ShardState {
		s := f.State()
		return api.ShardState{Episodes: s.Episodes, Finished: s.Finished, Turns: s.Turns, Calls: s.Calls,
			TokensPerSec: float64(s.Tokens) / max(time.Since(began).Seconds(), 1e-3)}
	}
	p.flow.Store(&state)
}

// samples has heartbeats report the capacity of a sampler until the returned function is called.
func (p *progress) samples(s policy.Sampler) (stop func()) {
	capacity := func() api.Capacity { return capacityOf(s) }
	p.capacity.Store(&capacity)
	return func() { p.capacity.Store(nil) }
}

// capacityOf is what a sampler has room for.
func capacityOf(s policy.Sampler) api.Capacity {
	out := api.Capacity{Engine: s.Describe().Device}
	if sized, ok := s.(policy.Sized); ok {
		room := sized.Room()
		out.Rows, out.Tokens = room.Rows, room.Tokens
	}
	return out
}

// details are the details of a heartbeat.
func (p *progress) details() []any {
	out := []any{p.done.Load(), p.total.Load()}
	if flow := p.flow.Load(); flow != nil {
		state := (*flow)()
		out = []any{state.Finished, state.Episodes, state}
	}
	if use := p.use.Load(); use != nil {
		out = append(out, (*use)())
	}
	if capacity := p.capacity.Load(); capacity != nil {
		out = append(out, (*capacity)())
	}
	return out
}

func (p *progress) set(done, total int) {
	p.done.Store(int64(done))
	p.total.Store(int64(total))
}

// tracked runs body under heartbeats, measures it, and tells metrics and the log of it. Errors that a retry cannot fix
// become non-retryable, with their kind. Outside Temporal, where CheckRun runs stages, there are neither heartbeats nor
// attempts. An activity that runs several stages has no stage of its own: these are told of instead.
func (d *Deps) tracked(ctx context.Context, e *Env, at api.Scope, t *api.Timing,
	body func(ctx context.Context, p *progress) error) error {
	started := time.Now()
	t.Start, t.Host = started.UnixMicro(), hostname()
	p := &progress{}
	if e.progress != nil {
		p, t.Attempt = e.progress, attemptOf(ctx)
	} else if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		t.Attempt, t.Queue = int(info.Attempt), max(0, started.Sub(info.ScheduledTime).Seconds())
		defer heartbeats(ctx, p)()
	}
	ctx = logs.With(ctx, whereabouts(at, t)...)
	if t.Stage == "" {
		err := contain(ctx, func() error { return body(ctx, p) })
		t.End = time.Now().UnixMicro()
		return ownLimit(ctx, classify(err))
	}
	d.stages.Begin(t.Stage, t.Attempt)
	if at.Step != api.InitStep {
		ctx = d.tracer.Step(ctx, at.Run, at.Step, at.Gen)
	}
	ctx, span := trace.Start(ctx, t.Stage, whereabouts(at, t)...)
	ctx = logs.With(ctx, trace.IDs(ctx)...)
	t.TraceID, t.SpanID = trace.Current(ctx)
	slog.DebugContext(ctx, "stage begins")
	used := meter.begin()
	err := contain(ctx, func() error { return body(ctx, p) })
	t.End = time.Now().UnixMicro()
	t.CPU += used()
	err = ownLimit(ctx, classify(err))
	d.tell(ctx, *t, err, span)
	return err
}

func hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// atInit is the scope of an activity that works for a whole run.
func atInit(run string) api.Scope { return api.Scope{Run: run, Step: api.InitStep} }

// whereabouts says in the log which execution of which stage a line is about.
func whereabouts(at api.Scope, t *api.Timing) []slog.Attr {
	out := []slog.Attr{slog.String("run", at.Run)}
	if at.Step != api.InitStep {
		out = append(out, slog.Int("step", at.Step))
	}
	if t.Stage != "" {
		out = append(out, slog.String("stage", t.Stage))
	}
	if t.Shard >= 0 {
		out = append(out, slog.Int("shard", t.Shard))
	}
	if t.Turn >= 0 {
		out = append(out, slog.Int("turn", t.Turn))
	}
	if t.Attempt > 0 {
		out = append(out, slog.Int("attempt", t.Attempt))
	}
	return out
}

// tell counts and logs the end of an execution, and ends its span.
func (d *Deps) tell(ctx context.Context, t api.Timing, err error, span *trace.Span) {
	took := time.Duration(t.End-t.Start) * time.Microsecond
	if err == nil {
		d.stages.End(t, "")
		span.End("", slog.Bool("adopted", t.Adopted), slog.Int64("rows", t.Rows), slog.Int64("tokens", t.Tokens))
		slog.InfoContext(ctx, "stage done", "seconds", took.Seconds(), "adopted", t.Adopted, "rows", t.Rows, "tokens",
			t.Tokens)
		return
	}
	kind := failureKind(ctx, err)
	d.stages.End(t, kind)
	span.End(kind)
	// Not a warning: the error is returned, and its caller says it.
	slog.InfoContext(ctx, "stage failed", "seconds", took.Seconds(), "kind", kind, "error", err)
}

// failureKind names the kind of a failure for metrics and logs.
func failureKind(ctx context.Context, err error) string {
	var decided *temporal.ApplicationError
	switch {
	case ctx.Err() != nil:
		return "cancelled"
	case errors.As(err, &decided) && decided.Type() != "":
		return decided.Type()
	}
	return "other"
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
				var details []any
				if err := rescue.Do(func() error { details = p.details(); return nil }); err != nil {
					slog.WarnContext(ctx, "a heartbeat failed", "error", err, "stack", rescue.Stack(err))
				}
				activity.RecordHeartbeat(ctx, details...)
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
	var own remote.CodeError
	var nonFinite *policy.NonFiniteError
	var device *policy.DeviceError
	var decided *temporal.ApplicationError
	switch {
	case err == nil:
		return nil
	// Already classified by a stage that this stage has run within itself.
	case errors.As(err, &decided) && decided.NonRetryable():
		if err == error(decided) { // its details say which stage that was
			return err
		}
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
	case errors.As(err, &own): // a retry loads what its file holds then
		return temporal.NewApplicationError(err.Error(), api.FailCode)
	case errors.As(err, &nonFinite):
		return permanent(api.FailNonFinite, err)
	case errors.Is(err, policy.ErrOutOfMemory): // others may hold the device's memory at the moment
		return temporal.NewApplicationError(err.Error(), api.FailMemory)
	case errors.Is(err, policy.ErrBadRequest):
		return permanent(api.FailRefused, err)
	case errors.As(err, &device): // another device, or the same device after a reset, may work
		return temporal.NewApplicationError(err.Error(), device.Kind)
	case errors.Is(err, commit.ErrUnkept): // another attempt puts it again
		return temporal.NewApplicationError(err.Error(), api.FailUnkept)
	case errors.Is(err, store.ErrNoSpace), errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return temporal.NewApplicationError(err.Error(), api.FailFull)
	case errors.Is(err, commit.ErrDamaged), errors.Is(err, schema.ErrCorrupt):
		return permanent(api.FailCorrupt, err)
	case errors.Is(err, store.ErrNoBucket), errors.Is(err, store.ErrCredentials), errors.Is(err, store.ErrTooLarge):
		return permanent(api.FailBadInput, err)
	// A stage that this stage has run within itself has named the kind.
	case errors.As(err, &decided) && decided.Type() != "" && err != error(decided):
		return temporal.NewApplicationError(strings.Replace(err.Error(), decided.Error(), decided.Message(), 1),
			decided.Type())
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
