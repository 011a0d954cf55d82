package tool

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/trace"
)

// Toolbox holds the tools of an episode.
type Toolbox []Tool

// Specs describes the tools.
func (b Toolbox) Specs() []Spec {
	out := make([]Spec, len(b))
	for i, t := range b {
		out[i] = t.Spec()
	}
	return out
}

// Stateful reports whether one of the tools keeps state for episodes.
func (b Toolbox) Stateful() bool {
	for _, t := range b {
		if t.Spec().Stateful {
			return true
		}
	}
	return false
}

// batchCalls is how many calls of a tool run before progress is reported. A stateful tool gets all calls at once,
// because its episodes differ in length, and reports progress itself (Done).
const batchCalls = 512

// RunEach runs calls of several tools and returns the outcome of each, in the order of the calls. Each tool gets its
// calls in their order; of tools that share a server, the first gets the calls of all. Different tools run
// concurrently, so the calls of a turn that go to different tools do not wait for each other. If progress is not nil,
// it is called with the number of calls that have an outcome, possibly from several goroutines.
//
// An error means that a tool, and no single call, is broken.
func (b Toolbox) RunEach(ctx context.Context, calls []Call, progress func(done int)) ([]Outcome, error) {
	specs := b.Specs()
	byTool := make([][]int, len(b))
	for i, c := range calls {
		at := runs(specs, c.Tool)
		if at < 0 {
			return nil, fmt.Errorf("run tool calls: there is no tool %q", c.Tool)
		}
		byTool[at] = append(byTool[at], i)
	}
	var done atomic.Int64
	count := func(n int) {
		if now := done.Add(int64(n)); progress != nil {
			progress(int(now))
		}
	}
	outcomes := make([]Outcome, len(calls))
	group, ctx := rescue.WithContext(ctx)
	for i, t := range b {
		if of := byTool[i]; len(of) > 0 {
			group.Go(func() error {
				ctx, span := trace.Start(ctx, "tool "+t.Spec().Name, slog.Int("calls", len(of)))
				err := runAll(ctx, t, calls, of, outcomes, count)
				span.End(broken(err))
				return err
			})
		}
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return outcomes, nil
}

// broken names the failure of a tool for a trace.
func broken(err error) string {
	if err != nil {
		return "broken"
	}
	return ""
}

// runs returns the index of the tool that runs the calls of the named one; -1 if there is none of that name.
func runs(specs []Spec, name string) int {
	i := slices.IndexFunc(specs, func(s Spec) bool { return s.Name == name })
	if i < 0 {
		return i
	}
	return slices.IndexFunc(specs, specs[i].Shares)
}

// runAll runs one tool's calls, which are those at the indices.
func runAll(ctx context.Context, t Tool, calls []Call, indices []int, outcomes []Outcome, count func(int)) error {
	size := batchCalls
	if t.Spec().Stateful {
		size = len(indices)
	}
	for start := 0; start < len(indices); start += size {
		some := indices[start:min(start+size, len(indices))]
		batch := make([]Call, len(some))
		for i, at := range some {
			batch[i] = calls[at]
		}
		counted := 0
		of, err := outcomesOf(withDone(ctx, func(n int) { counted += n; count(n) }), t, batch)
		if err != nil {
			return err
		}
		count(len(some) - counted)
		for i, at := range some {
			outcomes[at] = of[i]
		}
	}
	return nil
}

// outcomesOf runs one batch. A panic and a result that is no verdict are breakage.
func outcomesOf(ctx context.Context, t Tool, calls []Call) ([]Outcome, error) {
	var results []Result
	err := rescue.Do(func() (err error) {
		results, err = t.Run(ctx, calls)
		return err
	})
	var broken CallErrors
	if err != nil && (!errors.As(err, &broken) || len(broken) != len(calls)) {
		return nil, err
	}
	if len(results) != len(calls) {
		return nil, fmt.Errorf("tool %s broke: it gave %d results of %d calls", t.Spec().Name, len(results), len(calls))
	}
	out := make([]Outcome, len(calls))
	for i := range calls {
		switch {
		case broken != nil && broken[i] != nil:
			out[i].Broken = broken[i]
		case !results[i].Status.IsVerdict():
			out[i].Broken = fmt.Errorf("the tool gave the status %q, which is no verdict", results[i].Status)
		default:
			out[i].Result = results[i]
		}
	}
	return out, nil
}

// End releases what the tools hold for an episode that makes no further calls.
func (b Toolbox) End(ctx context.Context, episode string) error {
	var errs []error
	for _, t := range b {
		if e, ok := t.(Ender); ok {
			errs = append(errs, e.End(ctx, episode))
		}
	}
	return errors.Join(errs...)
}

type doneKey struct{}

// withDone returns a context in which a tool reports progress by Done. Calls of report do not overlap.
func withDone(ctx context.Context, report func(calls int)) context.Context {
	var turn sync.Mutex
	return context.WithValue(ctx, doneKey{}, func(n int) {
		turn.Lock()
		defer turn.Unlock()
		report(n)
	})
}

// Done reports that further calls of a batch have ended, while Run is still running. A tool need not call it.
func Done(ctx context.Context, calls int) {
	if report, ok := ctx.Value(doneKey{}).(func(int)); ok {
		report(calls)
	}
}
