package rollout

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/session"
)

// tallies are sessions whose cells are answered with how many there have been, "exit" ends one, and "break" breaks it.
type tallies struct {
	mu   sync.Mutex
	open int
	most int
}

func (o *tallies) OpenSession(context.Context, string, sandbox.Limits) (sandbox.Session, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open++
	o.most = max(o.most, o.open)
	return &tally{of: o}, nil
}

type tally struct {
	of    *tallies
	cells int
	over  bool
}

func (y *tally) Run(_ context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if y.over {
		return sandbox.Result{}, sandbox.ErrSessionEnded
	}
	if cell.Code == "break" {
		return sandbox.Result{}, fmt.Errorf("%w: gone", sandbox.ErrInfrastructure)
	}
	if cell.Code == "6 * 7" {
		return sandbox.Result{Status: sandbox.StatusOK, Value: "42"}, nil
	}
	y.cells++
	y.over = cell.Code == "exit"
	return sandbox.Result{Status: sandbox.StatusOK, Value: fmt.Sprintf("%d %s", y.cells, cell.Code)}, nil
}

func (y *tally) Close() error {
	y.of.mu.Lock()
	defer y.of.mu.Unlock()
	y.of.open--
	return nil
}

func poolOf(t *testing.T, sessions sandbox.Sessions, most int) *session.Pool {
	t.Helper()
	p := session.New(sessions, session.Settings{Most: most})
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

// caller is an engine whose responses call the tool until they answer; what they call follows from the row's stream.
type caller struct {
	*babbler
	codes []string
}

func (c caller) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for _, stream := range req.Streams {
		rng := newRand(stream)
		text := "</reason>"
		for range 1 + rng.IntN(2) {
			if rng.IntN(4) == 0 {
				text += protocol.BrokenCall("1")
			} else {
				text += protocol.Call(c.codes[rng.IntN(len(c.codes))], "")
			}
		}
		text += protocol.EndOfTurn
		if rng.IntN(5) == 0 {
			text = protocol.AnswerResponse("1")
		}
		ids := c.tok.Encode(text)
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))), append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
	}
	return g, nil
}

// An evaluation in one pool and a staged loop whose every turn finds no interpreter at all see the same, and no more
// interpreters are used at once than NotebookEpisodes.
func TestNotebooksOfRunEpisodesAreTheStagedLoops(t *testing.T) {
	s := settings
	s.MaxTurns, s.MaxTokens, s.MaxTurnTokens = 5, 1200, 200
	l := newLoop(t, s, 3)
	engine := caller{&babbler{tok: l.tok}, []string{"x", "y", "exit"}}
	rows := prompts(l, 60)
	staged, err := l.Episodes(rows, 4, nil, nil)
	require.NoError(t, err)
	for active(staged) > 0 {
		pool := poolOf(t, &tallies{}, 7)
		require.NoError(t, l.advance(t.Context(), engine, Notebooks(pool, 3, "staged"), "v", staged))
	}
	whole, err := l.Episodes(rows, 4, nil, nil)
	require.NoError(t, err)
	open := &tallies{}
	pool := poolOf(t, open, NotebookEpisodes)
	require.NoError(t, l.RunEpisodes(t.Context(), engine, Notebooks(pool, 4, "0"), "v", whole, nil))
	require.Empty(t, cmp.Diff(staged, whole))
	require.LessOrEqual(t, open.most, NotebookEpisodes)
	counts := pool.Counts()
	require.Zero(t, counts.Evicted+counts.Replays)
	require.Zero(t, counts.Live, "those of finished episodes are ended")
	second, restarted := 0, 0
	for _, e := range whole {
		for _, turn := range e.Turns {
			for _, r := range turn.Results {
				if strings.HasPrefix(r.Value, "2 ") {
					second++
				}
				if r.Stderr == session.Restarted {
					restarted++
				}
			}
		}
	}
	require.Positive(t, second)
	require.Positive(t, restarted)
}

func TestPendingNotebooksAreThePendingCalls(t *testing.T) {
	s := settings
	s.MaxTurns, s.MaxTokens, s.MaxTurnTokens = 4, 1200, 200
	l := newLoop(t, s, 5)
	engine := caller{&babbler{tok: l.tok}, []string{"x", "y"}}
	episodes, err := l.Episodes(prompts(l, 10), 2, nil, nil)
	require.NoError(t, err)
	pool := poolOf(t, &tallies{}, 100)
	for range 3 {
		req, rows := l.NextRequest(episodes)
		g, err := engine.Generate(t.Context(), req)
		require.NoError(t, err)
		require.NoError(t, l.Absorb(episodes, rows, g, "v"))
		calls, refs := l.PendingCalls(episodes)
		for i, ref := range refs {
			calls[i].Trace = ref.Trace(episodes)
		}
		var cells []sandbox.Call
		for _, b := range l.PendingNotebooks(episodes, func(e *Episode) string { return e.TrajectoryID }) {
			require.NotEmpty(t, b.Cells)
			cells = append(cells, b.Cells...)
			for i, ran := range b.Past {
				require.Equal(t, fmt.Sprintf("%d %s", i+1, ran.Cell.Code), ran.Result.Value, "each cell that ran, once, in order")
			}
		}
		require.Equal(t, calls, cells)
		results, err := Notebooks(pool, 2, "").results(t.Context(), l, episodes)
		require.NoError(t, err)
		require.NoError(t, l.AbsorbResults(episodes, results))
	}
	for _, e := range episodes {
		require.False(t, l.MayCall(e), "the fourth response is the last one, and its calls do not run")
	}
}

func TestBreakageOfANotebookStopsAnEvaluation(t *testing.T) {
	l := newLoop(t, settings, 3)
	episodes, err := l.Episodes(prompts(l, 8), 2, nil, nil)
	require.NoError(t, err)
	err = l.RunEpisodes(t.Context(), caller{&babbler{tok: l.tok}, []string{"x", "break"}}, Notebooks(poolOf(t, &tallies{}, 64), 2, ""), "v", episodes, nil)
	require.ErrorContains(t, err, "could not be run")
	require.True(t, errors.Is(err, sandbox.ErrInfrastructure))
}
