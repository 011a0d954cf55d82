package rollout

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/internal/logs"
	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/internal/trace"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
)

// Flow takes episodes to their ends, none of which waits for another: a call leaves as soon as its response is
// complete, and the next response begins as soon as its results are there.
//
// A flow works ahead of those who commit turns, and decides nothing. Turns and results that it has are the ones that
// Respond, RunCalls and Step would give. Where the engine, a tool or the environment fails on an episode, the flow
// leaves the episode there, for these functions to try again and to judge. So a record does not show whether a flow
// has worked.
//
//	respond ─▶ calls or action ─▶ respond ─▶ … ─▶ end
//	   └─ a failure: the episode is left at its turn
//
// The samples of a tree wait for each other, but for no other group: see grow.
type Flow struct {
	loop  *Loop
	o     FlowOptions
	calls chan struct{} // bounds the calls in flight

	mu       sync.Mutex
	episodes []*flowing
	byID     map[string]*flowing
	growing  map[string]chan struct{} // by group whose tree grows: closed, and replaced, when it has new samples

	cancel  context.CancelFunc
	running sync.WaitGroup

	finished, turns, tokens, inFlight atomic.Int64
}

// FlowOptions are what a flow works with.
type FlowOptions struct {
	// Version is the digest of the policy that the episodes begin with.
	Version string
	// Respond generates one row, and returns the digest of the policy that wrote it. Many rows are asked for at once.
	// The result has one row.
	Respond func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error)
	// Box and Scope are those of RunCalls; without tools, Box is nil.
	Box   tool.Toolbox
	Scope tool.Scope
	// Ended is called with each sample that has ended, which nothing changes any more; nil: nothing is called. Calls
	// overlap, and nothing waits for them.
	Ended func(e *Episode)
	// Kept has the turns of trees that an earlier flow has kept; nil = none.
	Kept *Kept
	// AtOnce bounds the episodes whose calls run at once; 0 = 64.
	AtOnce int
}

// FlowState counts what a flow has done.
type FlowState struct {
	Episodes int   `json:"episodes"` // all of them; of trees, the samples that have begun
	Finished int   `json:"finished"` // episodes that have ended
	Turns    int64 `json:"turns"`    // responses
	Tokens   int64 `json:"tokens"`   // of these responses
	Calls    int64 `json:"calls"`    // episodes whose calls run now
}

// flowing is one episode of a flow.
type flowing struct {
	mu      sync.Mutex
	e       *Episode
	turns   []worked      // zero for turns from before the flow
	changed chan struct{} // closed, and replaced, when a turn or its results are there
	ended   bool
	broken  []tool.Outcome // of the pending calls that the episode was left at, if a call broke

	// Of a tree's sample: decided is closed when its round has decided, before which no results are absorbed, and
	// announced says that others know of its end.
	decided   chan struct{}
	announced bool
}

// worked says when a turn was asked for, when its calls ran, and what each of them took.
type worked struct {
	asked, ran, done time.Time
	calls            []tool.Timing
}

// NewFlow begins a flow of episodes, which from now on belong to it. They may have turns. The caller closes it.
func (l *Loop) NewFlow(ctx context.Context, episodes []*Episode, o FlowOptions) *Flow {
	if o.AtOnce < 1 {
		o.AtOnce = 64
	}
	ctx, cancel := context.WithCancel(ctx)
	f := &Flow{loop: l, o: o, byID: make(map[string]*flowing, len(episodes)), growing: map[string]chan struct{}{},
		calls: make(chan struct{}, o.AtOnce), cancel: cancel}
	if l.trees != nil {
		var groups [][]*flowing
		for _, group := range byGroup(episodes) {
			f.growing[group[0].GroupID] = make(chan struct{})
			groups = append(groups, f.admit(group))
		}
		for _, g := range groups {
			f.runInBackground(ctx, func() { f.grow(ctx, g) })
		}
		return f
	}
	for _, x := range f.admit(episodes) {
		f.runInBackground(ctx, func() { f.runEpisode(ctx, x) })
	}
	return f
}

// runInBackground runs work in a goroutine. If it panics, its episodes are left to the stages, as after an
// error.
func (f *Flow) runInBackground(ctx context.Context, work func()) {
	f.running.Go(func() {
		if err := rescue.Do(func() error { work(); return nil }); err != nil {
			slog.WarnContext(ctx, "an episode waits for its turn", "error", err, "stack", rescue.Stack(err))
		}
	})
}

// admit adds episodes to the flow.
func (f *Flow) admit(episodes []*Episode) (out []*flowing) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, e := range episodes {
		x := &flowing{e: e, changed: make(chan struct{})}
		out, f.byID[e.TrajectoryID] = append(out, x), x
	}
	f.episodes = append(f.episodes, out...)
	return out
}

// all returns the episodes that the flow has now.
func (f *Flow) all() []*flowing {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.episodes[:len(f.episodes):len(f.episodes)]
}

// Close ends the flow. Calls that run are cancelled. An engine that does not answer is not waited for.
func (f *Flow) Close() {
	f.cancel()
}

// Wait waits until every episode has ended.
func (f *Flow) Wait() { f.running.Wait() }

// State counts what the flow has done.
func (f *Flow) State() FlowState {
	s := FlowState{Finished: int(f.finished.Load()), Turns: f.turns.Load(), Tokens: f.tokens.Load(),
		Calls: f.inFlight.Load()}
	for _, x := range f.all() {
		x.mu.Lock()
		if x.e.leaf() {
			s.Episodes++
		}
		x.mu.Unlock()
	}
	return s
}

// runEpisode takes an episode to its end, or to where it fails.
func (f *Flow) runEpisode(ctx context.Context, x *flowing) {
	defer x.end()
	for x.e.Finish == "" {
		work := f.respond
		if !x.e.AwaitsResponse() {
			work = f.results
		}
		if !f.attempt(ctx, x, work) {
			return
		}
	}
	f.countEnded(x.e)
}

// attempt does a part of an episode. It reports whether the episode has it.
func (f *Flow) attempt(ctx context.Context, x *flowing, work func(context.Context, *flowing) error) bool {
	stage, turn := schema.StageRollout, len(x.e.Turns)
	if !x.e.AwaitsResponse() {
		stage, turn = schema.StageSandbox, turn-1
	}
	at := withEpisode(ctx, stage, turn, x.e.TrajectoryID)
	if err := rescue.Do(func() error {
		if f.fromKept(at, x) {
			return nil
		}
		return work(at, x)
	}); err != nil {
		if ctx.Err() == nil {
			slog.DebugContext(at, "an episode waits for its turn", "error", err, "stack", rescue.Stack(err))
		}
		return false
	}
	return ctx.Err() == nil
}

// countEnded counts an episode that has ended, and reports progress.
func (f *Flow) countEnded(e *Episode) {
	f.finished.Add(1)
	if f.o.Ended != nil {
		f.o.Ended(e)
	}
}

// withEpisode returns a context whose log lines and spans say which part of an episode they are about, as those of a
// stage that does that part turn by turn.
func withEpisode(ctx context.Context, stage string, turn int, trajectory string) context.Context {
	attrs := []slog.Attr{slog.String("stage", stage), slog.Int("turn", turn), slog.String("trajectory", trajectory)}
	return trace.With(logs.With(ctx, attrs...), attrs...)
}

// change changes the episode and what is known of a turn, and wakes those who wait for it.
func (x *flowing) change(turn int, fn func(w *worked) error) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if more := turn + 1 - len(x.turns); more > 0 {
		x.turns = append(x.turns, make([]worked, more)...)
	}
	if err := fn(&x.turns[turn]); err != nil {
		return err
	}
	close(x.changed)
	x.changed = make(chan struct{})
	return nil
}

func (x *flowing) end() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.ended = true
	close(x.changed)
}

func (f *Flow) respond(ctx context.Context, x *flowing) error {
	began, turn := time.Now(), len(x.e.Turns)
	one := []*Episode{x.e}
	req, rows := f.loop.NextRequest(one)
	got, version, err := f.o.Respond(ctx, policy.BatchRow{Prefix: req.Prefixes[0], Stream: req.Streams[0],
		MaxTokens: req.MaxTokens[0], Temperature: req.Temperature, Truncation: req.Truncation, Stop: req.Stop,
		Top: req.Top, TopTokens: req.TopTokens})
	if err != nil {
		return err
	}
	if err := f.loop.checkAnswers(req, got); err != nil {
		return err
	}
	f.turns.Add(1)
	f.tokens.Add(int64(len(got.Tokens[0])))
	return x.change(turn, func(w *worked) error {
		w.asked = began
		return f.loop.Absorb(ctx, one, rows, got, version)
	})
}

// results gets the results of the last turn.
func (f *Flow) results(ctx context.Context, x *flowing) error {
	turn := len(x.e.Turns) - 1
	absorb, err := f.run(ctx, x)
	if err != nil {
		return err
	}
	if err := x.awaitRound(ctx); err != nil {
		return err
	}
	if err := x.change(turn, absorb); err != nil {
		return err
	}
	if f.o.Box.Stateful() && !f.loop.MayCall(x.e) {
		if err := f.o.Box.End(ctx, x.e.Key(f.o.Scope).Episode()); err != nil {
			slog.WarnContext(ctx, "end the tools of an episode", "error", err)
		}
	}
	return nil
}

// awaitRound waits until the round of the sample has decided on branches.
func (x *flowing) awaitRound(ctx context.Context) error {
	if x.decided == nil {
		return nil
	}
	select {
	case <-x.decided:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run runs the calls of the last turn, or its action, and returns what absorbs the results.
func (f *Flow) run(ctx context.Context, x *flowing) (absorb func(w *worked) error, err error) {
	select {
	case f.calls <- struct{}{}:
		defer func() { <-f.calls }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	f.inFlight.Add(1)
	defer f.inFlight.Add(-1)
	began, turn := time.Now(), len(x.e.Turns)-1
	if f.loop.settings.Environment != nil {
		t, err := f.loop.transition(ctx, x.e)
		done := time.Now()
		return func(w *worked) error {
			w.ran, w.done = began, done
			return f.loop.absorbTransition(ctx, x.e, t)
		}, err
	}
	one := []*Episode{x.e}
	outcomes, refs, err := f.loop.RunCalls(ctx, f.o.Box, f.o.Scope, one, nil)
	if err != nil {
		return nil, err
	}
	for _, o := range outcomes {
		if o.Broken != nil {
			x.broken = outcomes
			return nil, o.Broken
		}
	}
	done := time.Now()
	return func(w *worked) error {
		w.calls = make([]tool.Timing, len(x.e.Turns[turn].Parsed.Calls))
		for i, ref := range refs {
			w.calls[ref.Call] = outcomes[i].Timing
		}
		w.ran, w.done = began, done
		return f.loop.AbsorbOutcomes(one, outcomes)
	}, nil
}
