package rollout

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/tool"
)

// Whatever a flow has done ahead of trees, and whatever it had to leave, the rows are those of rounds of all groups.
func TestFlowGrowsTheTreesOfRounds(t *testing.T) {
	fine := func(uint64) error { return nil }
	bad := func(s uint64) error { return map[bool]error{true: errRow}[s%9 == 0] }
	for name, change := range waysToGrow {
		for _, c := range []struct {
			name   string
			faulty func(uint64) error
			codes  []string
		}{{"fine", fine, nil}, {"engine", bad, nil}, {"calls", fine, []string{"print(1//0)"}},
			{"both", bad, []string{"print(1//0)", "x=1"}}} {
			t.Run(name+" "+c.name, func(t *testing.T) {
				t.Parallel()
				engine := func() policy.Sampler {
					return &stateless{fragile{babbler: &babbler{tok: newLoop(t, settings, 11).tok}, faulty: c.faulty}}
				}
				want := planted(t, treeOf(change), 12)
				want.toEnd(t, engine(), box(&cracked{codes: c.codes}), nil, func(*grown) {})

				got := planted(t, treeOf(change), 12)
				tools := box(&cracked{codes: c.codes})
				var mu sync.Mutex
				ends := map[string]int{}
				f := got.loop.NewFlow(t.Context(), got.rebuilt(t), FlowOptions{Version: "v", Respond: single(engine()),
					Box: tool.Sharing(tools), Ended: func(e *Episode) {
						mu.Lock()
						defer mu.Unlock()
						ends[e.TrajectoryID]++
					}})
				got.toEnd(t, engine(), tools, f, func(*grown) {})
				require.True(t, reflect.DeepEqual(want.rows, got.rows), "the rows")
				require.Empty(t, difference(want.episodes, got.episodes, sameEpisodes))
				f.Wait()
				f.Close()
				s := f.State()
				require.Zero(t, s.Calls)
				require.Equal(t, s.Finished, len(ends))
				for id, n := range ends {
					require.Equal(t, 1, n, id)
				}
				if c.name == "fine" {
					require.EqualValues(t, len(want.rows.Turns), s.Turns, "the flow had left nothing")
					require.Equal(t, FlowState{Episodes: 8 * 12, Finished: 8 * 12, Turns: s.Turns, Tokens: s.Tokens}, s)
				}
			})
		}
	}
}

// A flow goes on from committed rounds and from what earlier flows have kept of the group that came furthest, asks for
// no response and runs no call that is there, and grows the same trees.
func TestFlowGoesOnInTheMiddleOfTrees(t *testing.T) {
	whole := planted(t, treeOf(nil), 8)
	engine := &stateless{fragile{babbler: &babbler{tok: whole.loop.tok}, faulty: func(uint64) error { return nil }}}
	committed := []Rows{{}} // after each half round
	whole.toEnd(t, engine, box(new(python)), nil, func(g *grown) { committed = append(committed, g.rows) })
	require.Greater(t, len(committed), 8)
	for i, rows := range committed {
		begin := func() *grown {
			g := planted(t, treeOf(nil), 8)
			g.rows = Rows{slices.Clone(rows.Turns), slices.Clone(rows.Branches), slices.Clone(rows.Calls), nil}
			g.episodes, g.half = g.rebuilt(t), i%2 == 1
			return g
		}
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			first := begin()
			f := first.loop.NewFlow(t.Context(), first.rebuilt(t), FlowOptions{Version: "v", Respond: single(engine),
				Box: tool.Sharing(box(new(python)))})
			f.Wait()
			kept, mark, err := f.Unsaved(MarkOf(first.rebuilt(t)), 0, 0)
			require.NoError(t, err)
			again, _, err := f.Unsaved(mark, 0, 0)
			require.NoError(t, err)
			require.Zero(t, again.size(), "all is saved")
			require.Len(t, kept.Branches, len(kept.Turns))
			require.Equal(t, len(whole.rows.Turns), len(first.rows.Turns)+len(kept.Turns), "each turn is saved once")

			less := Rows{Turns: kept.Turns[:len(kept.Turns)/2], Branches: kept.Branches}
			held := KeptOfTrees([]Rows{less, kept, less})
			require.Equal(t, KeptOfTrees([]Rows{kept}).Len(), held.Len())
			second := begin()
			own := second.loop.NewFlow(t.Context(), second.rebuilt(t), FlowOptions{Version: "v", Kept: held,
				Respond: func(context.Context, policy.BatchRow) (policy.Generated, string, error) {
					t.Error("a kept turn is asked for again")
					return policy.Generated{}, "", errRow
				}, Box: box(&refusing{new(python), t})})
			second.toEnd(t, engine, box(new(python)), own, func(*grown) {})
			require.True(t, reflect.DeepEqual(whole.rows, second.rows), "the rows of what was kept")
			require.Zero(t, own.State().Turns)

			// Half of the rows are lost: the others count as far as they fit.
			third := begin()
			halves := Rows{Turns: every(kept.Turns, 2), Branches: kept.Branches, Calls: every(kept.Calls, 3)}
			rest := third.loop.NewFlow(t.Context(), third.rebuilt(t), FlowOptions{Version: "v",
				Kept: KeptOfTrees([]Rows{halves}), Respond: single(engine), Box: tool.Sharing(box(new(python)))})
			third.toEnd(t, engine, box(new(python)), rest, func(*grown) {})
			require.True(t, reflect.DeepEqual(whole.rows, third.rows), "the rows of half of what was kept")
		})
	}
}

// refusing fails a test that runs calls.
type refusing struct {
	*python
	t *testing.T
}

func (r *refusing) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	r.t.Error("a call that has results runs again")
	return r.python.Run(ctx, calls)
}

func every[T any](rows []T, n int) (out []T) {
	for i := range rows {
		if i%n == 0 {
			out = append(out, rows[i])
		}
	}
	return out
}

// A call leaves before the other samples of its group have their responses, and no group waits for another.
func TestCallsOfTreesLeaveAtOnce(t *testing.T) {
	g := planted(t, treeOf(func(t *Tree) { t.Monitor = false }), 2)
	engine := &stateless{fragile{babbler: &babbler{tok: g.loop.tok}, faulty: func(uint64) error { return nil }}}
	called := make(chan struct{})
	var once sync.Once
	slow := &signalling{python: new(python), ran: func() { once.Do(func() { close(called) }) }}
	held := 0
	var mu sync.Mutex
	respond := func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
		mu.Lock()
		last := held
		held++
		mu.Unlock()
		if last == 0 { // one sample's response comes after a call of another
			select {
			case <-called:
			case <-time.After(5 * time.Minute):
				t.Error("no call has left")
			}
		}
		return single(engine)(ctx, row)
	}
	f := g.loop.NewFlow(t.Context(), g.rebuilt(t), FlowOptions{Version: "v", Respond: respond, Box: box(slow)})
	f.Wait()
	require.Equal(t, 16, f.State().Finished)
}

// signalling says when calls run.
type signalling struct {
	*python
	ran func()
}

func (s *signalling) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	s.ran()
	return s.python.Run(ctx, calls)
}
