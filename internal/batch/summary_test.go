package batch

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/calc"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/internal/seed"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/rl/method"
	"github.com/ropewalk/ropewalk/rollout"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// The layout, the pieces and the replay buffer make the same rows as the sampler saw, for every kind of context.

// wanderer is a sampler that writes one of some texts at random, which may be cut off. It keeps what it was asked.
type wanderer struct {
	policy.Engine
	tok   tokenizer.Codec
	texts []string
	mu    sync.Mutex
	asked map[uint64][]int32 // prefix and response, by stream
}

func (w *wanderer) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var g policy.Generated
	for i, stream := range req.Streams {
		rng := rand.New(rand.NewPCG(stream, 1))
		ids, finish := w.tok.Encode(w.texts[rng.IntN(len(w.texts))]), policy.FinishStop
		if len(ids) > req.MaxTokens[i] {
			ids, finish = ids[:req.MaxTokens[i]], policy.FinishLength
		}
		if !slices.Contains(req.Stop, ids[len(ids)-1]) {
			finish = policy.FinishLength
		}
		w.asked[stream] = slices.Concat(req.Prefixes[i], ids)
		logProbs := make([]float32, len(ids))
		for k := range logProbs {
			logProbs[k] = -rng.Float32()
		}
		g.Tokens, g.Finish = append(g.Tokens, ids), append(g.Finish, finish)
		g.LogProbs, g.Entropies = append(g.LogProbs, logProbs), append(g.Entropies, make([]float32, len(ids)))
	}
	return g, nil
}

// echo is a sandbox in which every program prints its own text.
type echo struct{}

func (echo) Run(_ context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		out[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Code}
	}
	return out, nil
}

func (echo) Close() error { return nil }

// wandering is a loop with a world, and the texts that its policies write.
type wandering struct {
	settings rollout.Settings
	of       env.Declaration
	texts    []string
}

func questionsBy(t *testing.T, p protocol.Protocol) wandering {
	t.Helper()
	w := wandering{settings: rollout.Settings{MaxTurnTokens: 60, Protocol: p}, of: calc.Declaration,
		texts: []string{"a text that does not end its turn", "short<|im_end|>"}}
	for range 2 {
		for _, m := range []env.Move{{Code: "print(1)"}, {Thought: "so", Code: "x = 12"}} {
			text, ok := p.Write(m)
			require.True(t, ok)
			w.texts = append(w.texts, text)
		}
	}
	text, ok := p.Write(env.Move{Answer: "3"})
	require.True(t, ok)
	w.texts = append(w.texts, text)
	return w
}

func moves(t *testing.T) wandering {
	t.Helper()
	world, err := sokoban.New(sokoban.Settings{MaxTurns: 9, Size: 5, Boxes: 1, MinMoves: 2, MaxMoves: 6})
	require.NoError(t, err)
	w := wandering{settings: rollout.Settings{MaxTurnTokens: 30, Protocol: protocol.ThinkAction{}, Environment: world},
		of: sokoban.Declaration, texts: []string{"no action<|im_end|>", "on and on"}}
	for _, a := range []string{"up", "down", "left", "right", "sing"} {
		w.texts = append(w.texts, "<think></think><action>"+a+"</action><|im_end|>")
	}
	return w
}

// TestTheTrainerSeesWhatTheSamplerSaw runs random episodes with summaries under every protocol that asks for them.
func TestTheTrainerSeesWhatTheSamplerSaw(t *testing.T) {
	worlds := map[string]wandering{"think_action": moves(t)}
	for _, name := range protocol.Summarizers() {
		if p, err := protocol.Named(name); err == nil && !p.Spec().Acts {
			worlds[name] = questionsBy(t, p)
		}
	}
	require.Len(t, worlds, 8)
	for name, w := range worlds {
		for every := 1; every <= 3; every++ {
			t.Run(fmt.Sprintf("%s after %d", name, every), func(t *testing.T) { seenAndTrained(t, w, every) })
		}
	}
}

func seenAndTrained(t *testing.T, w wandering, every int) {
	s := w.settings
	s.MaxTurns, s.MaxTokens, s.Temperature, s.History, s.SummaryTokens = 6, 3000, 1, rollout.History{Summary: every}, 40
	tok, err := rollout.TokenizerOf(rollout.Summarizing{Protocol: s.Protocol}, w.of)
	require.NoError(t, err)
	loop, err := rollout.NewLoop(s, tok, 1)
	require.NoError(t, err)
	var episodes []*rollout.Episode
	for i := range 24 {
		task := env.Task{ID: "p", Level: 2, Text: "1+2", Answer: "3"}
		if s.Environment != nil {
			task, err = s.Environment.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: i})
			require.NoError(t, err)
		}
		e, err := loop.Begin(t.Context(), rollout.Identity{Label: rollout.LabelSample, Step: 1, Sample: i}, task)
		require.NoError(t, err)
		episodes = append(episodes, e)
	}
	sampler := &wanderer{tok: tok, texts: w.texts, asked: map[uint64][]int32{}}
	require.NoError(t, loop.RunEpisodes(t.Context(), sampler,
		rollout.NewTools(tool.Toolbox{tools.NewPython(echo{}, sandbox.Limits{})}, tool.Scope{}), "v", episodes, nil))

	var turns []schema.TurnRow
	var acts []schema.TransitionRow
	var rewards []schema.RewardRow
	var selection []schema.SelectionRow
	sampled := map[string][]int32{}
	for _, e := range episodes {
		rewards = append(rewards, schema.RewardRow{GroupID: e.GroupID, TrajectoryID: e.TrajectoryID})
		selection = append(selection, schema.SelectionRow{GroupID: e.GroupID, TrajectoryID: e.TrajectoryID, Kept: true,
			Count: 1, Weight: 1})
		for k := range e.Turns {
			turns = append(turns, rollout.TurnRows([]*rollout.Episode{e}, k)...)
			made, err := rollout.TransitionRows([]*rollout.Episode{e}, k)
			require.NoError(t, err)
			acts = append(acts, made...)
			stream := seed.Derive(rollout.LabelSample, 1, 1, 0, uint64(e.Sample), uint64(k))
			sampled[fmt.Sprint(e.TrajectoryID, k)] = sampler.asked[stream]
		}
	}
	history := rollout.History{Summary: every, Own: s.Environment != nil}
	kept, err := Kept(selection, rewards, turns)
	require.NoError(t, err)
	if s.Environment != nil {
		require.NoError(t, JoinTransitions(kept, acts))
	}
	var batch []schema.BatchRow
	summaries := 0
	for _, row := range layOut(kept, method.Turns, history) {
		require.Equal(t, sampled[fmt.Sprint(row.TrajectoryID, *row.Turn)], row.TokenIDs)
		if row.turn.summary {
			summaries++
			require.Equal(t, turnFacts{summary: true, valid: true, known: true, last: row.turn.last}, *row.turn)
			require.Positive(t, tokensUnder(row.LossMask), "a summary is trained")
		}
		batch = append(batch, row.BatchRow)
	}
	require.Len(t, batch, len(sampled))
	require.Positive(t, summaries)
	pieces := CutPieces(Unmasked(selection, turns), turns, history).Tokens()
	require.Len(t, pieces, len(batch))
	for i, row := range batch {
		require.Equal(t, row.TokenIDs, pieces[i], "the models see what the policy saw")
	}
}

// A turn without its transition is noticed; a summary needs none.
func TestSummariesNeedNoTransition(t *testing.T) {
	kept := []Sequence{{BatchRow: schema.BatchRow{TrajectoryID: "t"},
		turns: []schema.TurnRow{{Turn: 0}, {Turn: 1, Summary: new(true)}, {Turn: 2}}}}
	acts := []schema.TransitionRow{{TrajectoryID: "t"}, {TrajectoryID: "t", Turn: 2}}
	require.NoError(t, JoinTransitions(kept, acts))
	require.ErrorContains(t, JoinTransitions(kept, acts[:1]), "has 2 turns and 1 transitions")
}
