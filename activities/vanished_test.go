package activities

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// turnGate is a sandbox that runs no call of a turn, or of later ones, before it is opened.
type turnGate struct {
	*counting
	turn int
	gate chan struct{}
}

func (g *turnGate) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	for _, c := range calls {
		if turnOf(c.Trace) >= g.turn {
			<-g.gate
			break
		}
	}
	return g.counting.Run(ctx, calls)
}

// turnOf is the turn of a call with a trace (trajectory, turn and call).
func turnOf(trace string) int {
	parts := strings.Split(trace, "/")
	turn, err := strconv.Atoi(parts[len(parts)-2])
	if err != nil {
		panic(err)
	}
	return turn
}

// cutOff is the store of a worker that vanishes: from a moment on nothing that it writes arrives, and nothing answers
// it. When it is dead, its calls return, so that its goroutines end.
type cutOff struct {
	store.Store
	cut, dead chan struct{}
}

var errDead = errors.New("the worker is dead")

func (s *cutOff) write() error {
	select {
	case <-s.cut:
		<-s.dead
		return errDead
	default:
		return nil
	}
}

func (s *cutOff) Put(ctx context.Context, key string, data []byte) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.Put(ctx, key, data)
}

func (s *cutOff) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.PutIfAbsent(ctx, key, data)
}

func (s *cutOff) Delete(ctx context.Context, key string) error {
	if err := s.write(); err != nil {
		return err
	}
	return s.Store.Delete(ctx, key)
}

// hasResults reports whether the results of a turn's calls are kept for all trajectories, or committed.
func (b *flowBench) hasResults(turn int) bool {
	trajectories := map[string]bool{}
	for _, c := range b.kept().Calls {
		if int(c.Turn) == turn {
			trajectories[c.TrajectoryID] = true
		}
	}
	at := stage.Spec{Scope: b.scope, Stage: schema.StageSandbox, Turn: turn, Shard: 0}
	_, _, committed, err := b.deps.Record.Lookup(b.t.Context(), at.Place())
	return err == nil && (committed || len(trajectories) == b.trajectories())
}

// A worker vanishes without notice: it commits nothing more, not even a last segment. What it had kept until then is
// not done again. What it did afterwards, which would have been in one more segment, is generated once more.
func TestSegmentsOfAWorkerThatVanishes(t *testing.T) {
	const turns = 4 // three with calls, and the answer
	plain := flowsOf(t, turns-1)
	want, err := plain.run()
	require.NoError(t, err)
	all := turns * plain.trajectories()
	require.Equal(t, all, int(plain.invariant.rows.Load()))

	for held := range turns - 1 { // the turn whose calls have not run when the last segment is kept
		b := flowsOf(t, turns-1)
		objects := b.deps.Store
		lost := &cutOff{objects, make(chan struct{}), make(chan struct{})}
		box := &turnGate{b.sandbox, held, make(chan struct{})}
		b.at(lost, box)
		first := *b
		ended := make(chan error, 1)
		go func() {
			_, err := do(first.stepBench, episodes.RunEpisodes{Worker: first.deps}.Execute, first.input())
			ended <- err
		}()
		release := sync.OnceFunc(func() { close(lost.dead) })
		defer release()
		require.True(t, b.await(held, 1), "turn %d of all trajectories is kept", held)
		require.Eventually(t, func() bool { return held == 0 || b.hasResults(held-1) }, time.Minute, time.Millisecond)
		close(lost.cut)
		close(box.gate)
		require.Eventually(t, func() bool { return int(first.invariant.rows.Load()) == all }, time.Minute,
			time.Millisecond, "the worker generates to the end and keeps nothing")
		release()
		require.ErrorContains(t, <-ended, errDead.Error())
		kept := (held + 1) * b.trajectories()

		next := &counting{printer: printer{nth: -1}, ran: map[string]int{}}
		b.at(objects, next)
		got, err := b.run()
		require.NoError(t, err)
		require.Equal(t, want.Assembled, got.Assembled)
		require.Equal(t, want.Scored.Manifest, got.Scored.Manifest)
		require.Equal(t, all-kept, int(b.invariant.rows.Load()), "turns that are generated again")
		require.NotEmpty(t, next.ran, "the calls whose results were lost")
		for trace := range next.ran {
			require.GreaterOrEqual(t, turnOf(trace), held, "%s: its result was kept", trace)
		}
		require.Empty(t, b.segments())
	}
}
