package activities

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
)

// scripted is an engine whose policy makes the calls of a script, one turn after the other, and then answers. In the
// programs, ROW is replaced by a number of the trajectory.
type scripted struct {
	fakeEngine
	deps   *stage.Worker
	script [][]string // calls of each turn; a call that begins with "{" is a block that cannot be read
	rows   int        // number of trajectories that follow the script; the others answer at once; 0 = all follow it
}

func (s *scripted) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for i, prefix := range req.Prefixes {
		text := s.deps.Recipes.Tokens.Decode(prefix)
		turn := strings.Count(text, protocol.EndOfTurn+"\n<|im_start|>assistant\n") - 1
		response := protocol.AnswerResponse("7")
		if turn < len(s.script) && (turn > 0 || s.rows == 0 || i < s.rows) {
			response = "</reason>"
			for _, code := range s.script[turn] {
				if strings.HasPrefix(code, "{") {
					response += protocol.BrokenCall(code)
					continue
				}
				response += protocol.Call(strings.ReplaceAll(code, "ROW", fmt.Sprint(len(text))), "")
			}
			response += protocol.EndOfTurn
		}
		ids := s.deps.Recipes.Tokens.Encode(response)
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
		if req.Top > 0 {
			g.Top = append(g.Top, slices.Repeat([][]float32{{-1, -1}}, min(len(ids), req.TopTokens)))
		}
	}
	return g, nil
}

// notebookRoom lets a trajectory have five turns of long programs.
var notebookRoom = []string{"sandbox.session=true", "sandbox.cpu_seconds=1", "rollout.max_turns=5",
	"rollout.max_tokens=4000", "rollout.max_turn_tokens=1000",
	"policy.max_positions=4096", "rollout.max_tool_text_bytes=600"}

// notebookBench is a step whose policy follows a script, on a worker with sessions.
type notebookBench struct {
	*stepBench
	engine       *scripted
	turns, tools []schema.Ref
}

func notebooksOf(t *testing.T, sessions sandbox.Sessions, script ...[]string) *notebookBench {
	engine := &scripted{script: script}
	b := &notebookBench{stepBench: stepWith(t, engine, nil, notebookRoom...), engine: engine}
	b.on(sessions, 0)
	return b
}

// on switches to another worker with its own sessions.
func (b *notebookBench) on(sessions sandbox.Sessions, most int) {
	b.t.Helper()
	deps, err := New(stage.Options{Store: b.deps.Store, Trainer: b.engine, Rollout: b.engine, Tier: sandbox.TierFull,
		Code: b.deps.Code, Scratch: b.t.TempDir(),
		Sessions: sessions, MostSessions: most})
	require.NoError(b.t, err)
	b.t.Cleanup(func() { require.NoError(b.t, deps.Close()) })
	published(deps, b.policy.Digest)
	b.deps, b.engine.deps = deps, deps
}

// past names the manifest that was committed last.
func (b *notebookBench) past() (past api.Past) {
	if n := len(b.turns); n > len(b.tools) {
		past.Last = b.turns[n-1]
	} else if n > 0 {
		past.Last = b.tools[n-1]
	}
	return past
}

func (b *notebookBench) generate() {
	b.t.Helper()
	out, err := do(b.stepBench, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{
		Scope: b.scope, Past: b.past(), Prompts: b.prompts, Policy: b.policy, Turn: len(b.turns)})
	require.NoError(b.t, err)
	b.turns = append(b.turns, out.Manifest)
}

func (b *notebookBench) execute() (api.ToolsDone, error) {
	b.t.Helper()
	out, err := do(b.stepBench, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{
		Scope: b.scope, Past: b.past(), Prompts: b.prompts, Turn: len(b.tools)})
	if err == nil {
		b.tools = append(b.tools, out.Manifest)
	}
	return out, err
}

// turn generates a turn and runs its calls.
func (b *notebookBench) turn() []schema.ToolCallRow {
	b.t.Helper()
	b.generate()
	_, err := b.execute()
	require.NoError(b.t, err)
	return rowsAt[schema.ToolCallRow](b.stepBench, b.tools[len(b.tools)-1])
}

// unsteady are sessions that run left cells in all and then fail with errWorkerDied.
type unsteady struct {
	sandbox.Sessions
	left   atomic.Int64
	opened atomic.Int64
}

var errWorkerDied = errors.New("the worker died")

func (u *unsteady) OpenSession(ctx context.Context, packages string, limits sandbox.Limits) (sandbox.Session, error) {
	u.opened.Add(1)
	s, err := u.Sessions.OpenSession(ctx, packages, limits)
	return unsteadySession{s, u}, err
}

type unsteadySession struct {
	sandbox.Session
	of *unsteady
}

func (s unsteadySession) Run(ctx context.Context, cell sandbox.Call) (sandbox.Result, error) {
	if s.of.left.Add(-1) < 0 {
		return sandbox.Result{}, fmt.Errorf("%w: %w", sandbox.ErrInfrastructure, errWorkerDied)
	}
	return s.Session.Run(ctx, cell)
}
