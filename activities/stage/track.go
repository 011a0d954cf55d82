package stage

import (
	"context"
	"log/slog"
	"os"
	"time"

	"go.temporal.io/sdk/activity"

	"github.com/ropewalk/ropewalk/activities/failure"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/schema"
)

// Track runs body under heartbeats, measures it, and tells metrics and the log of it. Errors that a retry cannot fix
// become non-retryable, with their kind. Outside Temporal, where CheckRun runs stages, there are neither heartbeats nor
// attempts. An activity that runs several stages has no stage of its own: these are told of instead.
func (d *Worker) Track(ctx context.Context, e *Env, at api.Scope, t *api.Timing,
	body func(ctx context.Context, p *Progress) error) error {
	started := time.Now()
	t.Start, t.Host = started.UnixMicro(), Hostname()
	p := &Progress{}
	if e.Progress != nil {
		p, t.Attempt = e.Progress, attemptOf(ctx)
	} else if activity.IsActivity(ctx) {
		info := activity.GetInfo(ctx)
		t.Attempt, t.Queue = int(info.Attempt), max(0, started.Sub(info.ScheduledTime).Seconds())
		defer Heartbeats(ctx, p)()
	}
	ctx = logs.With(ctx, Whereabouts(at, t)...)
	if t.Stage == "" {
		err := contain(ctx, func() error { return body(ctx, p) })
		t.End = time.Now().UnixMicro()
		return failure.OwnLimit(ctx, failure.Classify(err))
	}
	d.Counts.Begin(t.Stage, t.Attempt)
	if at.Step != api.InitStep {
		ctx = d.Tracer.Step(ctx, at.Run, at.Step, at.Gen)
	}
	ctx, span := trace.Start(ctx, t.Stage, Whereabouts(at, t)...)
	ctx = logs.With(ctx, trace.IDs(ctx)...)
	t.TraceID, t.SpanID = trace.Current(ctx)
	slog.DebugContext(ctx, "stage begins")
	used := meter.begin()
	err := contain(ctx, func() error { return body(ctx, p) })
	t.End = time.Now().UnixMicro()
	t.CPU += used()
	err = failure.OwnLimit(ctx, failure.Classify(err))
	d.tell(ctx, *t, err, span)
	return err
}

// Hostname is the name of this machine.
func Hostname() string {
	host, err := os.Hostname()
	if err != nil {
		return "unknown"
	}
	return host
}

// AtInit is the scope of an activity that works for a whole run.
func AtInit(run string) api.Scope { return api.Scope{Run: run, Step: api.InitStep} }

// Whereabouts says in the log which execution of which stage a line is about.
func Whereabouts(at api.Scope, t *api.Timing) []slog.Attr {
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
func (d *Worker) tell(ctx context.Context, t api.Timing, err error, span *trace.Span) {
	took := time.Duration(t.End-t.Start) * time.Microsecond
	if err == nil {
		d.Counts.End(t, "")
		span.End("", slog.Bool("adopted", t.Adopted), slog.Int64("rows", t.Rows), slog.Int64("tokens", t.Tokens))
		slog.InfoContext(ctx, "stage done", "seconds", took.Seconds(), "adopted", t.Adopted, "rows", t.Rows, "tokens",
			t.Tokens)
		return
	}
	kind := failure.KindOf(ctx, err)
	d.Counts.End(t, kind)
	span.End(kind)
	// Not a warning: the error is returned, and its caller says it.
	slog.InfoContext(ctx, "stage failed", "seconds", took.Seconds(), "kind", kind, "error", err)
}

// Stages of measured times, each with its own place for manifests.
const (
	TimingsOf    = "timings_" // common prefix; the part follows
	TimingsStep  = "timings_step"
	TimingsRun   = "timings_run"
	TimingsCalls = "timings_calls"
)

// RecordTimings commits rows of the timings table at their own place; if an earlier attempt has committed there, its
// rows stay.
func (d *Worker) RecordTimings(ctx context.Context, s Spec, rows []schema.TimingRow) error {
	m, err := d.Manifest(ctx, s)
	if err != nil {
		return err
	}
	schema.Sort(rows)
	shard, err := commit.PutRows(ctx, d.Record, m.Place, rows)
	if err != nil {
		return err
	}
	m.Shards = append(m.Shards, shard)
	_, _, _, err = d.Record.Commit(ctx, m)
	return err
}
