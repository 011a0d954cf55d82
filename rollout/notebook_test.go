package rollout

import (
	"context"
	"encoding/json"
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
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// tallies are fake sessions. A cell's answer is the number of cells so far. "exit" ends a session, and "break" makes it
// fail.
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

// cellsOf runs calls as cells of a pool's interpreters, at most atOnce at a time.
func cellsOf(pool *session.Pool, atOnce int, pass string) Tools {
	return NewTools(tool.Toolbox{tools.NewNotebooks(pool, atOnce, sandbox.Limits{})}, tool.Scope{Pass: pass})
}

// caller is an engine whose responses call the tool until they answer. The row's stream decides what they call.
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
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
	}
	return g, nil
}

// An evaluation in one pool and a staged loop that finds no live interpreter at any turn produce the same episodes. The
// evaluation uses at most StatefulEpisodes interpreters at once.
func TestNotebooksOfRunEpisodesAreTheStagedLoops(t *testing.T) {
	s := settings
	s.MaxTurns, s.MaxTokens, s.MaxTurnTokens = 5, 1200, 200
	l := newLoop(t, s, 3)
	engine := caller{&babbler{tok: l.tok}, []string{"x", "y", "exit"}}
	rows := prompts(l, 60)
	staged, err := l.Episodes(t.Context(), rows, 4, Rows{})
	require.NoError(t, err)
	for active(staged) > 0 {
		pool := poolOf(t, &tallies{}, 7)
		require.NoError(t, l.advance(t.Context(), engine, cellsOf(pool, 3, "staged"), "v", staged))
	}
	whole, err := l.Episodes(t.Context(), rows, 4, Rows{})
	require.NoError(t, err)
	open := &tallies{}
	pool := poolOf(t, open, StatefulEpisodes)
	require.NoError(t, l.RunEpisodes(t.Context(), engine, cellsOf(pool, 4, "0"), "v", whole, nil))
	require.Empty(t, cmp.Diff(staged, whole))
	require.LessOrEqual(t, open.most, StatefulEpisodes)
	require.Zero(t, pool.Live(), "finished episodes leave none")
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

// recorded is a tool that keeps the calls of its last batch.
type recorded struct {
	tool.Tool
	calls *[]tool.Call
}

func (r recorded) Run(ctx context.Context, calls []tool.Call) ([]tool.Result, error) {
	*r.calls = calls
	return r.Tool.Run(ctx, calls)
}

// A stateful tool gets the pending calls with the calls of earlier turns that ran, each once and in order.
func TestStatefulToolsGetTheEarlierCalls(t *testing.T) {
	s := settings
	s.MaxTurns, s.MaxTokens, s.MaxTurnTokens = 4, 1200, 200
	l := newLoop(t, s, 5)
	engine := caller{&babbler{tok: l.tok}, []string{"x", "y"}}
	episodes, err := l.Episodes(t.Context(), prompts(l, 10), 2, Rows{})
	require.NoError(t, err)
	pool := poolOf(t, &tallies{}, 100)
	for range 3 {
		req, rows := l.NextRequest(episodes)
		g, err := engine.Generate(t.Context(), req)
		require.NoError(t, err)
		require.NoError(t, l.Absorb(t.Context(), episodes, rows, g, "v"))
		calls, refs := l.PendingCalls(episodes, tool.Scope{})
		var got []tool.Call
		python := recorded{tools.NewNotebooks(pool, 2, sandbox.Limits{}), &got}
		require.NoError(t, NewTools(tool.Toolbox{python}, tool.Scope{}).answer(t.Context(), l, episodes))
		require.Len(t, got, len(calls))
		for i, c := range got {
			for j, ran := range c.Past {
				require.Equal(t, fmt.Sprintf("%d %s", j+1, codeOf(t, ran.Call)), ran.Result.Value)
				require.Equal(t, c.Key.Episode(), ran.Call.Key.Episode())
				require.Less(t, ran.Call.Key.Turn, c.Key.Turn)
			}
			require.Equal(t, []int{refs[i].Turn, refs[i].Call}, []int{c.Key.Turn, c.Key.Call})
			c.Past = nil
			require.Equal(t, calls[i], c)
		}
	}
	for _, e := range episodes {
		require.False(t, l.MayCall(e), "the fourth response is the last one, and its calls do not run")
	}
}

// codeOf returns the program of a call.
func codeOf(t *testing.T, c tool.Call) string {
	t.Helper()
	var given struct{ Code string }
	require.NoError(t, json.Unmarshal(c.Arguments, &given))
	return given.Code
}

func TestBreakageOfANotebookStopsAnEvaluation(t *testing.T) {
	l := newLoop(t, settings, 3)
	episodes, err := l.Episodes(t.Context(), prompts(l, 8), 2, Rows{})
	require.NoError(t, err)
	err = l.RunEpisodes(t.Context(), caller{&babbler{tok: l.tok}, []string{"x", "break"}},
		cellsOf(poolOf(t, &tallies{}, 64), 2, ""), "v", episodes, nil)
	require.ErrorContains(t, err, "could not be run")
	require.True(t, errors.Is(err, sandbox.ErrInfrastructure))
}
