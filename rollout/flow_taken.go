package rollout

import (
	"context"
	"slices"
	"time"

	"github.com/ropewalk/ropewalk/tool"
)

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

// awaitEpisode waits until an episode has what is asked for, or will not have it.
func (f *Flow) awaitEpisode(
	ctx context.Context, e *Episode, has func(own *Episode) bool,
) (x *flowing, ok bool, err error) {
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
		x, ok, err := f.awaitEpisode(ctx, e, func(own *Episode) bool { return len(own.Turns) > turn })
		if err != nil {
			return nil, began, err
		}
		if !ok {
			remaining = append(remaining, e)
			continue
		}
		x.mu.Lock()
		t, w, same := x.e.Turns[turn], x.worked(turn), sameTurns(x.e, e, turn)
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
		f.loop.absorb(ctx, e, own)
		began = earlierTime(began, w.asked)
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
		x, ok, err := f.awaitEpisode(ctx, e, func(own *Episode) bool { return own.hasResults(turn) })
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
		t, w, same := x.e.Turns[turn], x.worked(turn), sameTurns(x.e, e, turn+1)
		x.mu.Unlock()
		if !same {
			continue
		}
		if t.Transition != nil {
			if err := f.loop.absorbTransition(ctx, e, *t.Transition); err != nil {
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
		began = earlierTime(began, w.ran)
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

// sameTurns reports whether two episodes have the same first turns, as many as are asked for, of the same versions.
// They differ where another worker has committed its own turns and the sampler does not repeat itself, or was newer.
func sameTurns(a, b *Episode, turns int) bool {
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

// earlierTime is the earlier of two times. A zero time is none.
func earlierTime(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
