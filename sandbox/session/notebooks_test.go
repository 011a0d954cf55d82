package session

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/stretchr/testify/require"
)

func cellsOf(codes ...string) (cells []sandbox.Call) {
	for _, code := range codes {
		cells = append(cells, sandbox.Call{Code: code})
	}
	return cells
}

// pastOf returns what a record holds about cells, by running them in a new pool.
func pastOf(t *testing.T, a *adders, codes ...string) (past []Ran) {
	t.Helper()
	p := newPool(t, a, Settings{})
	results, err := p.RunNotebook(t.Context(), Notebook{ID: "x", Cells: cellsOf(codes...)})
	require.NoError(t, err)
	for i, r := range results {
		past = append(past, Ran{sandbox.Call{Code: codes[i]}, r})
	}
	return past
}

// values returns the values of a notebook's cells, with an error's text for the first cell that fails.
func values(t *testing.T, p *player, b Notebook) (out []string) {
	t.Helper()
	results, err := p.RunNotebook(t.Context(), b)
	for _, r := range results {
		out = append(out, r.Value+r.Stdout+r.Stderr)
	}
	if err != nil {
		out = append(out, err.Error())
	}
	return out
}

func TestNotebooksGoOnFromTheirPast(t *testing.T) {
	const fresh = Restarted
	for _, tt := range []struct {
		name        string
		past, cells []string
		opened      int // interpreters opened for past and cells if there is none yet
		want        []string
	}{
		{"from the beginning", nil, []string{"+1", "+2"}, 1, []string{"1", "3"}},
		{"past is run again", []string{"+1", "+2"}, []string{"+3"}, 1, []string{"6"}},
		{"an exit that nothing shows", []string{"+1", "exit", "+2"}, []string{"+3"}, 2, []string{"5"}},
		{"an exit at the end", []string{"+1", "exit"}, []string{"+3", "+4"}, 2, []string{"3" + fresh, "7"}},
		{"what a time-out has ended is not run again", []string{"clock", "timeout_cpu", "+2"}, []string{"+3"}, 1,
			[]string{"5"}},
		{"a time-out at the end", []string{"+1", "timeout_wall"}, []string{"+3"}, 1, []string{"3" + fresh}},
		{"ends in a row", []string{"exit", "killed", "exit"}, []string{"exit", "+3"}, 3, []string{fresh, "3" + fresh}},
		{"no cell", []string{"+1"}, nil, 0, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			a := &adders{}
			past := pastOf(t, a, tt.past...)
			b := Notebook{ID: "x", Past: past, Cells: cellsOf(tt.cells...)}
			before := len(a.opened)
			p := newPool(t, a, Settings{})
			require.Equal(t, tt.want, values(t, p, b))
			require.Equal(t, tt.opened, len(a.opened)-before)

			// A pool that has run these same cells continues; one that has run others does not.
			p = newPool(t, a, Settings{})
			_, err := p.RunNotebook(t.Context(), Notebook{ID: "x", Cells: cellsOf(tt.past...)})
			require.NoError(t, err)
			got, want := values(t, p, b), tt.want
			if len(tt.past) > 0 && tt.past[0] == "clock" {
				want = got // the clock has changed: its results are not the record's
			}
			require.Equal(t, want, got)
			require.Equal(t, tt.want, values(t, p, b), "an earlier attempt has run the cells")
		})
	}
}

func TestANotebookThatDiffersIsLost(t *testing.T) {
	a := &adders{}
	past := pastOf(t, a, "+1", "timeout_cpu", "+1", "clock")
	p := newPool(t, a, Settings{})
	results, err := p.RunNotebook(t.Context(), Notebook{ID: "x", Past: past, Cells: cellsOf("+1")})
	require.Empty(t, results)
	require.EqualError(t, err, "session lost: cell 4 printed something else when run again")
	require.ErrorIs(t, err, sandbox.ErrSessionLost)
	require.True(t, a.last().closed.Load())

	// The same holds if the pool itself has lost the interpreter.
	p = newPool(t, a, Settings{})
	_, err = p.RunNotebook(t.Context(), Notebook{ID: "y", Past: past[:3], Cells: cellsOf("clock")})
	require.NoError(t, err)
	clock := Ran{sandbox.Call{Code: "clock"},
		sandbox.Result{Status: sandbox.StatusOK, Stdout: fmt.Sprint(a.clock.Load())}}
	a.last().lost.Store(true)
	_, err = p.RunNotebook(t.Context(), Notebook{ID: "y", Past: append(past[:3:3], clock), Cells: cellsOf("+1")})
	require.EqualError(t, err, "session lost: cell 4 printed something else when run again")
}

func TestConcurrentNotebooks(t *testing.T) {
	a := &adders{}
	p := newPool(t, a, Settings{Most: 3})
	clock := pastOf(t, a, "clock")
	var books []Notebook
	for i := range 20 {
		books = append(books, Notebook{ID: fmt.Sprint(i), Cells: cellsOf(fmt.Sprintf("+%d", i), "+100")})
	}
	books[7].Past = clock
	books[8].Cells = nil
	var mu sync.Mutex
	most := 0
	outcomes, err := p.RunNotebooks(t.Context(), books, 5,
		func(done int) { mu.Lock(); defer mu.Unlock(); most = max(most, done) })
	require.NoError(t, err)
	require.Equal(t, 20, most)
	for i, of := range outcomes {
		switch i {
		case 7:
			require.Len(t, of, 2)
			for _, o := range of {
				require.EqualError(t, o.Broken, "session lost: cell 1 printed something else when run again")
			}
		case 8:
			require.Empty(t, of)
		default:
			require.Equal(t, fmt.Sprint(i), of[0].Value)
			require.Equal(t, fmt.Sprint(100+i), of[1].Value)
		}
	}
	require.LessOrEqual(t, p.Live(), 3)
}

// frail breaks at one cell, or at every cell.
type frail struct {
	*adders
	under string // the code of the cell; "" means every cell
}

var errGone = errors.New("dial 127.0.0.1:9: connection refused")

func (f *frail) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	s, err := f.adders.OpenSession(ctx, packages, limits)
	return frailSession{s, f}, err
}

type frailSession struct {
	sandbox.Session
	of *frail
}

func (s frailSession) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if s.of.under == "" || cell.Code == s.of.under {
		return sandbox.Result{}, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, errGone)
	}
	if cell.Code == "6 * 7" {
		return sandbox.Result{Status: sandbox.StatusOK, Value: "42"}, nil
	}
	return s.Session.Run(ctx, cell)
}

func TestWhoIsToBlame(t *testing.T) {
	books := []Notebook{{ID: "a", Cells: cellsOf("+1", "+2")}, {ID: "b", Cells: cellsOf("+3", "+4", "+5")}}
	p := newPool(t, &frail{adders: &adders{}, under: "+4"}, Settings{})
	outcomes, err := p.RunNotebooks(t.Context(), books, 2, nil)
	require.NoError(t, err)
	require.Equal(t, "3", outcomes[0][1].Value)
	require.Equal(t, "3", outcomes[1][0].Value)
	for _, o := range outcomes[1][1:] {
		require.EqualError(t, o.Broken, "session lost: cell 2 could not be run", "the text has no address")
		require.ErrorIs(t, o.Broken, errGone)
	}
	p = newPool(t, &frail{adders: &adders{}}, Settings{})
	_, err = p.RunNotebooks(t.Context(), books, 2, nil)
	require.ErrorContains(t, err, "none of 2 notebooks got a verdict")
	_, err = p.RunNotebooks(t.Context(), books[:1], 2, nil)
	require.ErrorContains(t, err, "the sandbox broke on 1 notebooks, and on a trivial one")
	require.ErrorIs(t, err, errGone)

	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = newPool(t, &adders{}, Settings{}).RunNotebooks(ctx, []Notebook{{ID: "c", Cells: cellsOf("slow")}}, 1, nil)
	require.ErrorIs(t, err, context.DeadlineExceeded)
}

// If a cell may not have caused a kill itself, running it again shows that. If it has, the verdict remains.
func TestAKilledCellIsRunAgain(t *testing.T) {
	for _, signal := range []string{"SIGKILL", "SIGSEGV"} {
		a := &adders{signal: signal}
		p := newPool(t, a, Settings{})
		value(t, p, "x", "+3")
		a.last().killed.Store(true)
		require.Equal(t, "5", value(t, p, "x", "+2"))
		require.Len(t, a.opened, 2)
		r, err := p.play(t.Context(), "x", "suicide")
		require.NoError(t, err)
		require.Equal(t, sandbox.StatusKilled, r.Status)
		require.Len(t, a.opened, 3)
		require.Zero(t, a.live())
		require.Equal(t, "1", value(t, p, "x", "+1"), "in a new interpreter")
	}
}
