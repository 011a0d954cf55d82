package rollout

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// grow takes the tree of a group to its end, or to where it fails on one of the group's samples. A round of a group is
// that of Loop.Round: every open sample writes a turn, and the group decides on branches when all of these turns are
// there. Groups do not wait for each other. Calls leave as soon as their response is complete; only the results wait
// for the decision, which does not know them.
func (f *Flow) grow(ctx context.Context, group []*flowing) {
	defer func() { f.endGroup(group) }()
	f.announce(group...)
	if !f.finish(ctx, group) {
		return
	}
	for {
		var all []*Episode
		err := rescue.Do(func() (err error) {
			all, err = f.loop.Grow(episodesOf(group))
			return err
		})
		if err != nil {
			slog.DebugContext(ctx, "a tree waits for its turn", "group", group[0].e.GroupID, "error", err)
			return
		}
		group = append(group, f.admitStarted(all[len(group):])...)
		wrote := slices.DeleteFunc(slices.Clone(group), func(x *flowing) bool { return !x.e.AwaitsResponse() })
		if len(wrote) == 0 {
			return
		}
		branches, whole := f.round(ctx, group, wrote)
		if group = append(group, branches...); !whole {
			return
		}
	}
}

// finish gets the results that samples await before their group's first round: those of committed turns.
func (f *Flow) finish(ctx context.Context, group []*flowing) (whole bool) {
	var running rescue.WaitGroup
	var failed atomic.Bool
	for _, x := range group {
		if !x.e.AwaitsResults() {
			continue
		}
		running.Go(func() {
			if !f.attempt(ctx, x, f.results) {
				failed.Store(true)
				return
			}
			f.announce(x)
		})
	}
	running.Wait()
	return !failed.Load()
}

// round has the samples that await a turn write it, with its results, and those that then branch. It reports whether
// all of them have done so.
func (f *Flow) round(ctx context.Context, group, wrote []*flowing) (branches []*flowing, whole bool) {
	decided := make(chan struct{})
	var responding sync.WaitGroup
	var running rescue.WaitGroup
	var silent, failed atomic.Bool // a sample without a response, or without results
	write := func(x *flowing) {
		running.Go(func() {
			responds := f.attempt(ctx, x, f.respond)
			if !responds {
				silent.Store(true)
			}
			if x.decided != nil {
				responding.Done()
			}
			if !responds || x.e.AwaitsResults() && !f.attempt(ctx, x, f.results) || x.awaitRound(ctx) != nil {
				failed.Store(true)
				return
			}
			f.announce(x)
		})
	}
	for _, x := range wrote {
		x.decided = decided
		responding.Add(1)
	}
	for _, x := range wrote {
		write(x)
	}
	responding.Wait()
	if !silent.Load() {
		forks, err := f.decide(group, wrote)
		if err != nil {
			slog.DebugContext(ctx, "a tree waits for its turn", "group", group[0].e.GroupID, "error", err)
			failed.Store(true)
		}
		branches = f.admitStarted(forks)
	}
	close(decided)
	for _, x := range branches {
		write(x)
	}
	running.Wait()
	return branches, !failed.Load()
}

// decide is trees.decide for one group.
func (f *Flow) decide(group, wrote []*flowing) (branches []*Episode, err error) {
	for _, x := range group { // in order of their samples, and nothing else locks two
		x.mu.Lock()
		defer x.mu.Unlock()
	}
	err = rescue.Do(func() (err error) {
		branches, err = f.loop.trees.decide(episodesOf(group), episodesOf(wrote))
		return err
	})
	return branches, err
}

// announce says which samples have ended. Each is said once.
func (f *Flow) announce(xs ...*flowing) {
	for _, x := range xs {
		if x.e.Finish != "" && x.e.leaf() && !x.announced {
			x.announced = true
			f.countEnded(x.e)
		}
	}
}

// admitStarted admits the samples that a group has started, and wakes those who wait for them.
func (f *Flow) admitStarted(started []*Episode) []*flowing {
	if len(started) == 0 {
		return nil
	}
	out := f.admit(started)
	id := started[0].GroupID
	f.mu.Lock()
	close(f.growing[id])
	f.growing[id] = make(chan struct{})
	f.mu.Unlock()
	for _, x := range out {
		f.announce(x) // one without room for a token ends as it begins
	}
	return out
}

// endGroup ends the flow's work on a group and wakes those who wait for it.
func (f *Flow) endGroup(group []*flowing) {
	id := group[0].e.GroupID
	f.mu.Lock()
	close(f.growing[id])
	delete(f.growing, id)
	f.mu.Unlock()
	for _, x := range group {
		x.end()
	}
}

func episodesOf(xs []*flowing) []*Episode {
	out := make([]*Episode, len(xs))
	for i, x := range xs {
		out[i] = x.e
	}
	return out
}
