package activities

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/faults"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
)

// kept returns what all attempts have kept, each row once. Objects that cannot be read hold none.
func (b *flowBench) kept() (rows rollout.Rows) {
	turns, calls := map[[2]any]bool{}, map[[3]any]bool{}
	for _, key := range b.segments() {
		data, _ := b.deps.Store.Get(b.t.Context(), key)
		switch _, _, _, table, _ := schema.ParseSegmentKey(key); table {
		case schema.Turns:
			own, _ := schema.Decode[schema.TurnRow](data)
			for _, r := range own {
				if key := [2]any{r.TrajectoryID, r.Turn}; !turns[key] {
					turns[key], rows.Turns = true, append(rows.Turns, r)
				}
			}
		case schema.ToolCalls:
			own, _ := schema.Decode[schema.ToolCallRow](data)
			for _, r := range own {
				if key := [3]any{r.TrajectoryID, r.Turn, r.Call}; !calls[key] {
					calls[key], rows.Calls = true, append(rows.Calls, r)
				}
			}
		}
	}
	schema.Sort(rows.Turns)
	schema.Sort(rows.Calls)
	return rows
}

// await waits until as many turns of each trajectory are kept, counted from a turn on, and reports whether they are.
func (b *flowBench) await(from, turns int) bool {
	for range 6000 {
		n := 0
		for _, r := range b.kept().Turns {
			if int(r.Turn) >= from {
				n++
			}
		}
		if n >= turns*b.trajectories() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}

// dying is a store on which a commit fails as soon as turns from one on are kept: a worker dies there.
func (b *flowBench) dying(objects store.Store, place string, from, turns int, more ...faults.Rule) *faults.Store {
	return faults.New(objects, append(more, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/" + place,
		Before: func() { b.await(from, turns) }})...)
}

// gated is a sandbox that runs nothing before it is opened.
type gated struct {
	*counting
	gate chan struct{}
}

func (g *gated) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	<-g.gate
	return g.counting.Run(ctx, calls)
}

// refusing is a store that at times takes no segments.
type refusing struct {
	store.Store
	down atomic.Bool
}

func (s *refusing) PutIfAbsent(ctx context.Context, key string, data []byte) error {
	if s.down.Load() && strings.Contains(key, "/segments/") {
		return errors.New("the store is down")
	}
	return s.Store.PutIfAbsent(ctx, key, data)
}

// While the store takes no segments, turns are committed. Those after them are kept, and serve the next worker.
func TestTurnsThatWereCommittedBetweenTwoSegments(t *testing.T) {
	want, err := flowsOf(t, 3).run()
	require.NoError(t, err)
	b := flowsOf(t, 3)
	objects := &refusing{Store: b.deps.Store}
	box := &gated{b.sandbox, make(chan struct{})}
	open := sync.OnceFunc(func() { close(box.gate) })
	defer open()
	b.at(faults.New(objects, faults.Rule{Op: faults.PutIfAbsent, Key: "manifests/step=1/rollout/turn=2",
		Before: func() {
			objects.down.Store(false)
			b.await(2, 2)
		}}), box)
	ended := make(chan error, 1)
	go func() {
		_, err := b.run()
		ended <- err
	}()
	require.True(t, b.await(0, 1))
	objects.down.Store(true)
	open()
	require.ErrorContains(t, <-ended, faults.ErrInjected.Error())
	b.at(objects.Store, b.sandbox)
	got, err := b.run()
	require.NoError(t, err)
	require.Equal(t, want.Assembled, got.Assembled)
	require.Zero(t, b.invariant.rows.Load(), "rows that were kept")
	for trace, times := range b.sandbox.ran {
		require.Equal(t, 1, times, trace)
	}
}

// A put of a segment that fails, in any way, costs nothing: the next segment has its rows.
func TestSegmentsWhosePutFails(t *testing.T) {
	want, err := flowsOf(t, 3).run()
	require.NoError(t, err)
	for effect, name := range map[faults.Effect]string{faults.Fail: "it fails", faults.LostAck: "its answer is lost",
		faults.Torn: "it is torn", faults.TornSilently: "it is torn, and no one says so"} {
		for _, table := range []schema.Table{schema.Turns, schema.ToolCalls} {
			b := flowsOf(t, 3)
			objects, last := b.deps.Store, 1
			if effect == faults.TornSilently {
				last = 0 // it will never be there
			}
			b.at(b.dying(objects, "rollout/turn=2", 3, last, faults.Rule{Op: faults.PutIfAbsent,
				Key: "-" + string(table) + ".parquet", Nth: 1, Effect: effect}), b.sandbox)
			_, err := b.run()
			require.ErrorContains(t, err, faults.ErrInjected.Error(), "%s: %s", table, name)
			b.at(objects, b.sandbox)
			got, err := b.run()
			require.NoError(t, err, "%s: %s", table, name)
			require.Equal(t, want.Assembled, got.Assembled, "%s: %s", table, name)
			if effect != faults.TornSilently {
				require.Zero(t, b.invariant.rows.Load(), "%s: %s", table, name)
				for trace, times := range b.sandbox.ran {
					require.Equal(t, 1, times, "%s: %s: %s", table, name, trace)
				}
			}
		}
	}
}

// put keeps the rows of each turn as a segment of an attempt.
func (b *flowBench) put(attempt string, rows rollout.Rows) {
	b.t.Helper()
	for turn := range int32(4) {
		var own rollout.Rows
		for _, r := range rows.Turns {
			if r.Turn == turn {
				own.Turns = append(own.Turns, r)
			}
		}
		for _, r := range rows.Calls {
			if r.Turn == turn {
				own.Calls = append(own.Calls, r)
			}
		}
		putSegment(b, attempt, int(turn)+1, own.Turns)
		putSegment(b, attempt, int(turn)+1, own.Calls)
	}
}

// putSegment keeps rows of one table, if there are any.
func putSegment[R schema.Row](b *flowBench, attempt string, number int, rows []R) {
	b.t.Helper()
	if len(rows) == 0 {
		return
	}
	data, err := schema.Encode(rows)
	require.NoError(b.t, err)
	key := schema.SegmentKey(schema.SegmentsPrefix(b.scope.Run, 1, 0, 0), attempt, number, schema.TableOf[R]())
	require.NoError(b.t, b.deps.Store.PutIfAbsent(b.t.Context(), key, data))
}

// Segments that are damaged, or missing because a worker died while it put one, cost what was in them and what came
// after it. Those of other attempts serve as before.
func TestDamagedSegmentsCostThemselves(t *testing.T) {
	want, err := flowsOf(t, 3).run()
	require.NoError(t, err)
	for name, c := range map[string]struct {
		complete bool // there is an earlier attempt whose segments are whole
		damage   func(b *flowBench, key string) error
		rows     int // turns that are generated again
	}{
		"missing": {false, func(b *flowBench, key string) error { return b.deps.Store.Delete(b.t.Context(), key) }, 2},
		"damaged": {false, func(b *flowBench, key string) error {
			return b.deps.Store.Put(b.t.Context(), key, []byte(strings.Repeat("no rows", 9)))
		}, 2},
		"damaged, next to an attempt's that are whole": {true, func(b *flowBench, key string) error {
			return b.deps.Store.Put(b.t.Context(), key, []byte(strings.Repeat("no rows", 9)))
		}, 0},
	} {
		b := flowsOf(t, 3)
		objects := b.deps.Store
		b.at(b.dying(objects, "rollout/turn=0", 0, 4), b.sandbox)
		_, err := b.run()
		require.ErrorContains(t, err, faults.ErrInjected.Error(), name)
		rows := b.kept()
		require.Len(t, rows.Turns, 4*b.trajectories())
		for _, key := range b.segments() {
			require.NoError(t, objects.Delete(t.Context(), key))
		}
		b.put("2-b", rows)
		if c.complete {
			b.put("1-a", rows)
		}
		prefix := schema.SegmentsPrefix(b.scope.Run, 1, 0, 0)
		require.NoError(t, c.damage(b, schema.SegmentKey(prefix, "2-b", 2, schema.ToolCalls)))

		b.at(objects, b.sandbox)
		got, err := b.run()
		require.NoError(t, err, name)
		require.Equal(t, want.Assembled, got.Assembled, name)
		require.EqualValues(t, c.rows*b.trajectories(), b.invariant.rows.Load(), name)
		require.Empty(t, b.segments(), name)
	}
}
