package rollout

import (
	"context"
	"log/slog"
	"slices"
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
	if l.settings.Tree != nil {
		var groups [][]*flowing
		for _, group := range byGroup(episodes) {
			f.growing[group[0].GroupID] = make(chan struct{})
			groups = append(groups, f.admit(group))
		}
		for _, g := range groups {
			f.running.Go(func() { f.grow(ctx, g) })
		}
		return f
	}
	for _, x := range f.admit(episodes) {
		f.running.Go(func() { f.follow(ctx, x) })
	}
	return f
}

// admit takes up episodes.
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

// Wait waits until no episode goes on.
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

// follow takes an episode to its end, or to where it fails.
func (f *Flow) follow(ctx context.Context, x *flowing) {
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
	f.ended(x.e)
}

// attempt does a part of an episode. It reports whether the episode has it.
func (f *Flow) attempt(ctx context.Context, x *flowing, work func(context.Context, *flowing) error) bool {
	stage, turn := schema.StageRollout, len(x.e.Turns)
	if !x.e.AwaitsResponse() {
		stage, turn = schema.StageSandbox, turn-1
	}
	at := during(ctx, stage, turn, x.e.TrajectoryID)
	if err := rescue.Do(func() error { return work(at, x) }); err != nil {
		if ctx.Err() == nil {
			slog.DebugContext(at, "an episode waits for its turn", "error", err, "stack", rescue.Stack(err))
		}
		return false
	}
	return ctx.Err() == nil
}

// ended counts an episode that has ended, and says so.
func (f *Flow) ended(e *Episode) {
	f.finished.Add(1)
	if f.o.Ended != nil {
		f.o.Ended(e)
	}
}

// during returns a context whose log lines and spans say which part of an episode they are about, as those of a stage
// that does that part turn by turn.
func during(ctx context.Context, stage string, turn int, trajectory string) context.Context {
	attrs := []slog.Attr{slog.String("stage", stage), slog.Int("turn", turn), slog.String("trajectory", trajectory)}
	return trace.With(logs.With(ctx, attrs...), attrs...)
}

// change changes the episode and what is known of a turn, and says so to those who wait for it.
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
	if f.keptTurn(x) {
		return nil
	}
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
		return f.loop.Absorb(one, rows, got, version)
	})
}

// results gets the results of the last turn.
func (f *Flow) results(ctx context.Context, x *flowing) error {
	turn := len(x.e.Turns) - 1
	if f.keptResults(ctx, x) {
		return nil
	}
	absorb, err := f.run(ctx, x)
	if err != nil {
		return err
	}
	if err := x.waits(ctx); err != nil {
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

// waits waits until the sample's round has decided.
func (x *flowing) waits(ctx context.Context) error {
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
			return f.loop.absorbTransition(x.e, t)
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

// find returns the flow's own episode; nil if it has none. A tree may begin it later.
func (f *Flow) find(ctx context.Context, e *Episode) (*flowing, error) {
	for {
		f.mu.Lock()
		x, more := f.byID[e.TrajectoryID], f.growing[e.GroupID]
		f.mu.Unlock()
		if x != nil || more == nil {
			return x, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// await waits until an episode has what is asked for, or will not have it.
func (f *Flow) await(ctx context.Context, e *Episode, has func(own *Episode) bool) (x *flowing, ok bool, err error) {
	if x, err = f.find(ctx, e); x == nil {
		return nil, false, err
	}
	for {
		x.mu.Lock()
		ok, ended, changed := has(x.e), x.ended, x.changed
		x.mu.Unlock()
		if ok || ended {
			return x, ok, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, false, ctx.Err()
		}
	}
}

// Respond lets the flow's turns be those of the episodes that await one. It waits for them, and returns the episodes
// that the flow has left, which still await theirs, and when the first of the others was asked for. Where the flow's
// version is another one, it has left all.
func (f *Flow) Respond(ctx context.Context, version string, episodes []*Episode) (remaining []*Episode,
	began time.Time, err error) {
	for _, e := range AwaitingResponses(episodes) {
		turn := len(e.Turns)
		if version != f.o.Version {
			remaining = append(remaining, e)
			continue
		}
		x, ok, err := f.await(ctx, e, func(own *Episode) bool { return len(own.Turns) > turn })
		if err != nil {
			return nil, began, err
		}
		if !ok {
			remaining = append(remaining, e)
			continue
		}
		x.mu.Lock()
		t, w, same := x.e.Turns[turn], x.worked(turn), agree(x.e, e, turn)
		x.mu.Unlock()
		if !same || t.Excluded != "" || !slices.Equal(t.Context, e.Context) {
			remaining = append(remaining, e)
			continue
		}
		own := Turn{Response: t.Response, LogProbs: t.LogProbs, Entropies: t.Entropies, Finish: t.Finish,
			PolicyVersion: t.PolicyVersion}
		if t.Fork != nil { // without the decision, which is made again
			own.Fork = &Fork{Entropy: t.Fork.Entropy}
		}
		f.loop.absorb(e, own)
		began = earlier(began, w.asked)
	}
	return remaining, began, nil
}

// RunLeft runs the pending calls of the episodes that the flow has left, as RunCalls does and with its results.
// verdicts names the tools that gave the flow a verdict in this turn: these are not to blame for calls that break.
func (f *Flow) RunLeft(ctx context.Context, box tool.Toolbox, episodes []*Episode, verdicts map[string]bool,
	progress func(done, total int)) (outcomes []tool.Outcome, refs []CallRef, err error) {
	calls, refs := f.loop.PendingCalls(episodes, f.o.Scope)
	for _, c := range calls {
		if !verdicts[c.Tool] {
			return f.loop.RunCalls(ctx, box, f.o.Scope, episodes, progress)
		}
	}
	// A tool is not blamed for a single call.
	for i, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		one := episodes[i : i+1]
		own, _ := f.loop.PendingCalls(one, f.o.Scope)
		if box.Stateful() || len(own) < 2 {
			some, _, err := f.loop.RunCalls(ctx, box, f.o.Scope, one, nil)
			if err != nil {
				return nil, nil, err
			}
			outcomes = append(outcomes, some...)
			continue
		}
		for _, c := range own {
			some, err := box.RunEach(ctx, []tool.Call{c}, nil)
			if err != nil {
				return nil, nil, err
			}
			outcomes = append(outcomes, some...)
		}
	}
	return outcomes, refs, nil
}

// Results lets the results that the flow has be those of the episodes that await some. It waits for them, and returns
// when the first of them was begun, the calls that ran, and the tools that gave verdicts. Episodes that the flow has
// left still await their results. Of these, one whose call broke, on a tool that gave a verdict on another call of the
// turn, is excluded: that call is to blame.
func (f *Flow) Results(ctx context.Context, episodes []*Episode) (began time.Time, ran []RanCall,
	verdicts map[string]bool, err error) {
	var broken []left
	verdicts = map[string]bool{}
	for i, e := range episodes {
		if !e.AwaitsResults() {
			continue
		}
		turn := len(e.Turns) - 1
		x, ok, err := f.await(ctx, e, func(own *Episode) bool { return own.hasResults(turn) })
		if err != nil {
			return began, nil, nil, err
		}
		if !ok {
			if x != nil && len(x.e.Turns) == turn+1 && x.broken != nil { // it has ended, so that no one changes it
				broken = append(broken, left{e, x.broken})
			}
			continue
		}
		x.mu.Lock()
		t, w, same := x.e.Turns[turn], x.worked(turn), agree(x.e, e, turn+1)
		x.mu.Unlock()
		if !same {
			continue
		}
		if t.Transition != nil {
			if err := f.loop.absorbTransition(e, *t.Transition); err != nil {
				return began, nil, nil, err
			}
		} else {
			f.loop.absorbResults(e, slices.Clone(t.Results))
		}
		for call, timing := range w.calls {
			if t.Parsed.Calls[call].Error == "" && t.Results[call].Excluded == "" {
				ran = append(ran, RanCall{CallRef{Episode: i, Turn: turn, Call: call}, timing, w.done})
				verdicts[f.tool(t.Parsed.Calls[call].Name)] = true
			}
		}
		began = earlier(began, w.ran)
	}
	for _, b := range broken {
		if err := f.exclude(b.e, b.outcomes, verdicts); err != nil {
			return began, nil, nil, err
		}
	}
	return began, ran, verdicts, nil
}

// left is an episode at whose calls the flow has stopped.
type left struct {
	e        *Episode
	outcomes []tool.Outcome
}

// exclude absorbs the outcomes of a turn's calls, of which some broke, if each of the broken calls' tools gave
// verdicts.
func (f *Flow) exclude(e *Episode, outcomes []tool.Outcome, verdicts map[string]bool) error {
	calls, _ := f.loop.PendingCalls([]*Episode{e}, f.o.Scope)
	if len(calls) != len(outcomes) {
		return nil
	}
	for i, o := range outcomes {
		if o.Broken == nil {
			verdicts[calls[i].Tool] = true
		}
	}
	for i, o := range outcomes {
		if o.Broken != nil && !verdicts[calls[i].Tool] {
			return nil
		}
	}
	return f.loop.AbsorbOutcomes([]*Episode{e}, outcomes)
}

// tool returns the name of the tool that answers to a name.
func (f *Flow) tool(name string) string {
	s, _ := tool.Find(f.loop.settings.tools(), name)
	return s.Name
}

// RanCall is a call that has run, and when it ended.
type RanCall struct {
	CallRef
	tool.Timing
	End time.Time
}

// worked returns what is known of a turn. The caller holds the lock.
func (x *flowing) worked(turn int) (w worked) {
	if turn < len(x.turns) {
		w = x.turns[turn]
	}
	return w
}

// agree reports whether two episodes have the same first turns, as many as are asked for, of the same versions. They
// differ where another worker has committed turns of its own and the sampler does not repeat itself, or was newer.
func agree(a, b *Episode, turns int) bool {
	for k := range turns {
		x, y := &a.Turns[k], &b.Turns[k]
		if x.PolicyVersion != y.PolicyVersion || !slices.Equal(x.Context, y.Context) ||
			!slices.Equal(x.Response, y.Response) {
			return false
		}
	}
	return true
}

// hasResults reports whether a turn's calls have results, or its action a transition.
func (e *Episode) hasResults(turn int) bool {
	return turn < len(e.Turns) && (e.Turns[turn].Results != nil || e.Turns[turn].Transition != nil)
}

// earlier is the earlier of two times. A zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// FlowMark says how much of each episode is saved, by trajectory: turns, and results of turns.
type FlowMark map[string][2]int

// MarkOf marks all that episodes have.
func MarkOf(episodes []*Episode) FlowMark {
	m := make(FlowMark, len(episodes))
	for _, e := range episodes {
		n := len(e.Turns)
		m[e.TrajectoryID] = [2]int{n, n}
		if e.AwaitsResults() {
			m[e.TrajectoryID] = [2]int{n, n - 1}
		}
	}
	return m
}

// Unsaved returns the rows of what the flow has beyond a mark, and the mark beyond them, which the caller takes once
// they are saved. turns and results are how many of every episode's are committed, and need no saving.
func (f *Flow) Unsaved(mark FlowMark, turns, results int) (rows Rows, beyond FlowMark, err error) {
	all := f.all()
	beyond = make(FlowMark, len(all))
	for _, x := range all {
		m := mark[x.e.TrajectoryID]
		if f.loop.settings.Tree == nil { // a tree's episodes begin at different times
			m = [2]int{max(m[0], turns), max(m[1], results)}
		}
		m, err := x.unsaved(m, &rows)
		if err != nil {
			return Rows{}, nil, err
		}
		beyond[x.e.TrajectoryID] = m
	}
	schema.Sort(rows.Turns)
	schema.Sort(rows.Branches)
	schema.Sort(rows.Calls)
	schema.Sort(rows.Transitions)
	return rows, beyond, nil
}

// unsaved adds the rows of an episode beyond its mark, and returns the mark beyond them.
func (x *flowing) unsaved(m [2]int, rows *Rows) ([2]int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	one := []*Episode{x.e}
	if n := x.e.Node; n != nil && n.Role == schema.RoleBranch { // its parent has the turns before
		m = [2]int{max(m[0], n.From), max(m[1], n.From)}
	}
	for ; m[0] < len(x.e.Turns); m[0]++ {
		rows.Turns = append(rows.Turns, TurnRows(one, m[0])...)
		if x.e.Node != nil {
			rows.Branches = append(rows.Branches, x.e.branchRow(m[0]))
		}
	}
	for ; m[1] < len(x.e.Turns) && (x.e.hasResults(m[1]) || m[1] < len(x.e.Turns)-1); m[1]++ {
		rows.Calls = append(rows.Calls, ToolCallRows(one, m[1])...)
		own, err := TransitionRows(one, m[1])
		if err != nil {
			return m, err
		}
		rows.Transitions = append(rows.Transitions, own...)
	}
	return m, nil
}
