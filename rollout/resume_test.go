package rollout

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/schema"
)

// Rows of a flow count only where they continue what is committed, and never next to another flow's.
func TestResumeTakesRowsThatContinue(t *testing.T) {
	l := newLoop(t, settings, 11)
	live, _ := fresh(t, l, 16)
	rows := batches(t, l, nil, &babbler{tok: l.tok}, box(&python{}), live)
	long := 0
	for i, e := range live {
		if len(e.Turns) > len(live[long].Turns) {
			long = i
		}
	}
	require.Greater(t, len(live[long].Turns), 1)
	own := rows.of(live[long])

	short := Rows{Turns: own.Turns[:1]}
	gap := Rows{Turns: own.Turns[1:]}
	other := Rows{Turns: append([]schema.TurnRow{own.Turns[0]}, own.Turns[1:]...), Calls: own.Calls}
	episodes, _ := fresh(t, l, 16)
	l.Resume(t.Context(), episodes, []Rows{gap, short, own})
	require.Empty(t, cmp.Diff(live[long], episodes[long]))

	// Another worker has committed another first turn.
	changed := other
	changed.Turns = append([]schema.TurnRow(nil), other.Turns...)
	changed.Turns[0].TokenIDs = append([]int32{5}, changed.Turns[0].TokenIDs...)
	changed.Turns[0].ContextTokens++
	changed.Turns[0].TokenIDs = changed.Turns[0].TokenIDs[:len(changed.Turns[0].TokenIDs)-1]
	committed, _ := fresh(t, l, 16)
	committed, err := l.Advance(t.Context(), committed, Rows{Turns: rows.Turns[:len(live)]})
	require.NoError(t, err)
	before := len(committed[long].Turns)
	l.Resume(t.Context(), committed, []Rows{changed})
	require.Len(t, committed[long].Turns, before)
}

// of returns the rows of one episode.
func (r Rows) of(e *Episode) Rows {
	return r.only(func(id string, _ int32) bool { return id == e.TrajectoryID })
}

// until returns the rows of the turns before one.
func (r Rows) until(turn int) Rows {
	return r.only(func(_ string, k int32) bool { return int(k) < turn })
}

func (r Rows) only(keep func(trajectory string, turn int32) bool) (out Rows) {
	for _, x := range r.Turns {
		if keep(x.TrajectoryID, x.Turn) {
			out.Turns = append(out.Turns, x)
		}
	}
	for _, x := range r.Calls {
		if keep(x.TrajectoryID, x.Turn) {
			out.Calls = append(out.Calls, x)
		}
	}
	for _, x := range r.Transitions {
		if keep(x.TrajectoryID, x.Turn) {
			out.Transitions = append(out.Transitions, x)
		}
	}
	return out
}

func (r Rows) and(more Rows) Rows {
	return Rows{Turns: slices.Concat(r.Turns, more.Turns), Calls: slices.Concat(r.Calls, more.Calls),
		Transitions: slices.Concat(r.Transitions, more.Transitions)}
}

// Turns that are committed between two segments are in neither. The turns after them count all the same.
func TestResumeAcrossTurnsThatWereCommittedMeanwhile(t *testing.T) {
	l := newLoop(t, settings, 11)
	want, _ := fresh(t, l, 16)
	rows := batches(t, l, nil, &babbler{tok: l.tok}, box(&python{}), want)
	require.NotZero(t, rows.only(func(_ string, turn int32) bool { return turn == 2 }).size())

	own, first := fresh(t, l, 16)
	gate := make(chan struct{})
	f := l.NewFlow(t.Context(), own, FlowOptions{Version: "v", Box: box(&python{}),
		Respond: func(ctx context.Context, row policy.BatchRow) (policy.Generated, string, error) {
			if !slices.Contains(first, row.Stream) {
				<-gate
			}
			return single(&stateless{fragile{babbler: &babbler{tok: l.tok}, faulty: on()}})(ctx, row)
		}})
	defer f.Close()
	open := sync.OnceFunc(func() { close(gate) })
	defer open()
	var one Rows
	var mark FlowMark
	require.Eventually(t, func() bool { // all have their first turn
		var err error
		one, mark, err = f.Unsaved(nil, 0, 0)
		return err == nil && len(one.Turns) == len(own)
	}, time.Minute, time.Millisecond)
	open()
	f.Wait()
	two, _, err := f.Unsaved(mark, 2, 2)
	require.NoError(t, err)
	kept := one.and(two)
	require.Zero(t, kept.only(func(_ string, turn int32) bool { return turn == 1 }).size())

	resumed, _ := fresh(t, l, 16)
	resumed, err = l.Advance(t.Context(), resumed, rows.until(2))
	require.NoError(t, err)
	l.Resume(t.Context(), resumed, []Rows{kept})
	require.Empty(t, cmp.Diff(want, resumed))
}

// An episode goes on as far as its rows are whole, whatever is missing of the others. Rows that are there twice are no
// obstacle.
func TestResumeGoesOnAsFarAsRowsAreWhole(t *testing.T) {
	l := newLoop(t, settings, 11)
	want, _ := fresh(t, l, 16)
	rows := batches(t, l, nil, &babbler{tok: l.tok}, box(&python{}), want)
	var torn *Episode
	for _, e := range want {
		if len(e.Turns) == 3 && e.Turns[1].Results != nil {
			torn = e
		}
	}
	require.NotNil(t, torn)
	is := func(id string) bool { return id == torn.TrajectoryID }
	for name, c := range map[string]struct {
		lost         func(r *Rows)
		turns        int
		results, all bool // of the last turn; whether nothing is lost
	}{
		"the results of turn 0": {func(r *Rows) {
			r.Calls = slices.DeleteFunc(r.Calls, func(x schema.ToolCallRow) bool {
				return is(x.TrajectoryID) && x.Turn == 0
			})
		}, 1, false, false},
		"one result of turn 1 is another call's": {func(r *Rows) {
			for i := range r.Calls {
				if x := &r.Calls[i]; is(x.TrajectoryID) && x.Turn == 1 {
					x.Call++
				}
			}
		}, 2, false, false},
		"turn 1": {func(r *Rows) {
			r.Turns = slices.DeleteFunc(r.Turns, func(x schema.TurnRow) bool {
				return is(x.TrajectoryID) && x.Turn == 1
			})
		}, 1, true, false},
		"turn 2 has another context": {func(r *Rows) {
			for i := range r.Turns {
				if x := &r.Turns[i]; is(x.TrajectoryID) && x.Turn == 2 {
					x.AnchorHash = "other"
				}
			}
		}, 2, true, false},
		"nothing, but all is there twice": {func(r *Rows) { *r = r.and(*r) }, 3, false, true},
	} {
		kept := Rows{}.and(rows)
		c.lost(&kept)
		got, _ := fresh(t, l, 16)
		l.Resume(t.Context(), got, []Rows{kept})
		for i, e := range got {
			if c.all || e.TrajectoryID != torn.TrajectoryID {
				require.Empty(t, cmp.Diff(want[i], e), name)
				continue
			}
			require.Len(t, e.Turns, c.turns, name)
			require.Equal(t, c.results, e.hasResults(c.turns-1), name)
			require.Equal(t, c.results, e.AwaitsResponse(), name)
		}
		got, err := l.Advance(t.Context(), got, rest(rows, got))
		require.NoError(t, err, name)
		require.Empty(t, cmp.Diff(want, got), name)
	}
}

// rest returns the rows that the episodes do not have.
func rest(rows Rows, have []*Episode) (out Rows) {
	for _, e := range have {
		own := rows.of(e)
		for _, x := range own.Turns {
			if int(x.Turn) >= len(e.Turns) {
				out.Turns = append(out.Turns, x)
			}
		}
		for _, x := range own.Calls {
			if !e.hasResults(int(x.Turn)) {
				out.Calls = append(out.Calls, x)
			}
		}
	}
	return out
}
