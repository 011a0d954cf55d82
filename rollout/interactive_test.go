package rollout

import (
	"context"
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/rollout/protocol"
	"github.com/ropewalk/ropewalk/schema"
)

// rooms are small rooms of sokoban. An episode in them has six turns.
func rooms(t testing.TB) env.Environment {
	t.Helper()
	e, err := sokoban.New(sokoban.Settings{MaxTurns: 6, Size: 5, Boxes: 1, MinMoves: 1, MaxMoves: 6})
	require.NoError(t, err)
	return e
}

func actingLoop(t testing.TB, world env.Environment, past int) *Loop {
	t.Helper()
	tok, err := TokenizerOf(protocol.ThinkAction{}, sokoban.Declaration)
	require.NoError(t, err)
	l, err := NewLoop(Settings{
		MaxTurns: 6, MaxTurnTokens: 24, MaxTokens: 400, Temperature: 1, Protocol: protocol.ThinkAction{},
		Environment: world, PastTurns: past,
	}, tok, 3)
	require.NoError(t, err)
	return l
}

// mover is an engine that acts at random and sometimes writes a bad response.
type mover struct {
	policy.Engine
	l *Loop
}

func (m mover) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for i, stream := range req.Streams {
		rng := newRand(stream)
		text := []string{
			"<think></think><action>up</action><|im_end|>", "<think>so</think><action>down</action><|im_end|>",
			"<think></think><action>left</action><|im_end|>",
			"<think></think><action>right</action><|im_end|>", "<think></think><action>sing</action><|im_end|>",
			"<action>up</action><|im_end|>",
			"<think>on and on and on and on and on and on",
		}[rng.IntN(7)]
		ids, finish := m.l.tok.Encode(text), policy.FinishStop
		if len(ids) >= req.MaxTokens[i] || ids[len(ids)-1] != req.Stop[0] {
			ids, finish = ids[:min(len(ids), req.MaxTokens[i])], policy.FinishLength
		}
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, finish)
		if req.Top > 0 {
			g.Top = append(g.Top, likely(newRand(stream), min(len(ids), req.TopTokens), req.Top))
		}
	}
	return g, nil
}

// After every half step of every turn, the episodes rebuilt from rows equal those in memory, for every length of the
// past in the prompts.
func TestInteractiveEpisodesAreRebuilt(t *testing.T) {
	for _, past := range []int{0, 2} {
		l := actingLoop(t, rooms(t), past)
		var prompts []schema.PromptRow
		for g := range 6 {
			task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: g})
			require.NoError(t, err)
			row, err := l.PromptRow(t.Context(), 1, g, task)
			require.NoError(t, err)
			require.NoError(t, row.Validate())
			prompts = append(prompts, row)
		}
		rows := Rows{}
		live, err := l.Episodes(t.Context(), prompts, 4, rows)
		require.NoError(t, err)
		check := func() {
			t.Helper()
			again, err := l.Episodes(t.Context(), prompts, 4, rows)
			require.NoError(t, err)
			if d := difference(live, again); d != "" {
				t.Fatalf("-memory +rows:\n%s", d)
			}
		}
		for turn := 0; active(live) > 0; turn++ {
			require.NoError(t, l.Respond(t.Context(), mover{l: l}, "v", live))
			rows.Turns = append(rows.Turns, TurnRows(live, turn)...)
			check()
			require.NoError(t, l.Step(t.Context(), live))
			made, err := TransitionRows(live, turn)
			require.NoError(t, err)
			rows.Transitions = append(rows.Transitions, made...)
			check()
		}
		require.Len(t, rows.Transitions, len(rows.Turns), "each turn acts")
		ends := map[Finish]int{}
		valid := 0
		for _, r := range rows.Transitions {
			require.NoError(t, r.Validate())
			if r.Valid {
				valid++
			}
		}
		require.Positive(t, valid)
		require.Less(t, valid, len(rows.Transitions))
		for _, e := range live {
			row := TrajectoryRow(e)
			require.NoError(t, row.Validate())
			require.Equal(t, row.Turns, row.ToolCalls)
			require.Equal(t, row.Turns, *row.BegunCalls)
			ends[e.Finish]++
			for k, turn := range e.Turns {
				require.Equal(t, turn.Context, e.seen(k, turn.Context), "a whole prompt is all that the policy sees")
			}
		}
		require.Equal(t, map[Finish]int{FinishDone: len(live)}, ends, "the room's own limit of turns is the loop's")
		for _, r := range rows.Turns {
			require.NoError(t, r.Validate())
		}
		_, err = l.Episodes(t.Context(), prompts, 4,
			Rows{Turns: rows.Turns, Transitions: append(rows.Transitions, rows.Transitions[0])})
		require.ErrorIs(t, err, ErrRows)
		changed := append([]schema.TransitionRow{}, rows.Transitions...)
		changed[0].Action = "jump"
		_, err = l.Episodes(t.Context(), prompts, 4, Rows{Turns: rows.Turns, Transitions: changed})
		require.ErrorIs(t, err, ErrRows)
	}
}

// faulty is an environment that fails on some episodes.
type faulty struct {
	env.Environment
	step func(next env.State, t env.Transition) (env.State, env.Transition, error)
}

func (f faulty) Step(ctx context.Context, state env.State, action string) (env.State, env.Transition, error) {
	next, t, err := f.Environment.Step(ctx, state, action)
	if err != nil || action != "up" {
		return next, t, err
	}
	return f.step(next, t)
}

// If an environment fails on one episode, that episode is excluded and never gets a reward. If it fails on all of
// several episodes, Step returns an error.
func TestBrokenStepsExclude(t *testing.T) {
	for name, c := range map[string]struct {
		step func(next env.State, t env.Transition) (env.State, env.Transition, error)
		why  string
	}{
		"panics": {func(env.State, env.Transition) (env.State, env.Transition, error) { panic("no such cell") },
			"no such cell"},
		"errs": {func(env.State, env.Transition) (env.State, env.Transition, error) {
			return nil, env.Transition{}, errors.New("lost")
		}, "lost"},
		"NaN": {func(s env.State, t env.Transition) (env.State, env.Transition, error) {
			t.Reward = math.NaN()
			return s, t, nil
		}, "the reward is NaN"},
		"image": {func(s env.State, t env.Transition) (env.State, env.Transition, error) {
			t.Observation.Parts = []env.Part{{Kind: "image"}}
			return s, t, nil
		}, `part of kind "image"`},
		"too early": {func(s env.State, t env.Transition) (env.State, env.Transition, error) {
			t.Success, t.Done = true, false
			return s, t, nil
		}, "success before"},
	} {
		t.Run(name, func(t *testing.T) {
			l := actingLoop(t, faulty{rooms(t), c.step}, 0)
			begin := func(actions ...string) []*Episode {
				var out []*Episode
				for i, a := range actions {
					task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, Index: i})
					require.NoError(t, err)
					e, err := l.Begin(t.Context(), Identity{Label: LabelSample, Step: 1, Sample: i}, task)
					require.NoError(t, err)
					text, ok := l.protocol.Write(env.Move{Action: a})
					require.True(t, ok)
					l.absorb(t.Context(), e, l.scripted(text))
					out = append(out, e)
				}
				return out
			}
			some := begin("up", "down")
			require.NoError(t, l.Step(t.Context(), some))
			require.Equal(t, FinishExcluded, some[0].Finish)
			require.Contains(t, some[0].Excluded, c.why)
			require.NotEqual(t, FinishExcluded, some[1].Finish)
			rows, err := TransitionRows(some, 0)
			require.NoError(t, err)
			require.Len(t, rows, 2)
			require.NoError(t, rows[0].Validate())
			require.NotNil(t, rows[0].Excluded)
			require.NoError(t, TrajectoryRow(some[0]).Validate())
			require.ErrorContains(t, l.Step(t.Context(), begin("up", "up")), "each of them fails")
			ended, cancel := context.WithCancel(t.Context())
			cancel()
			require.ErrorIs(t, l.Step(ended, begin("down")), context.Canceled)
		})
	}
}

// The expert's demonstrations solve their rooms, each turn is its own row, and noise makes some demonstrations
// fail.
func TestExpertDemonstrations(t *testing.T) {
	l := actingLoop(t, rooms(t), 1)
	shares := map[float64]float64{}
	for _, noise := range []float64{0, 0.5} {
		all, err := demonstrated(t, l, nil, Script{Noise: noise}, 0, 60)
		require.NoError(t, err)
		right := 0
		for _, d := range all {
			tokens, masks := d.Sequences()
			require.Len(t, tokens, len(d.Episode.Turns))
			for k, turn := range d.Episode.Turns {
				require.Equal(t, len(turn.Context)+len(turn.Response), len(tokens[k]))
				require.Len(t, masks[k], len(tokens[k]))
				require.True(t, turn.Parsed.WellFormed)
			}
			if d.Right {
				right++
			}
		}
		shares[noise] = float64(right) / float64(len(all))
		part, err := demonstrated(t, l, nil, Script{Noise: noise}, 40, 5)
		require.NoError(t, err)
		if d := cmp.Diff(all[40:45], part); d != "" {
			t.Errorf("demonstrations depend on how many are drawn:\n%s", d)
		}
	}
	require.Equal(t, 1.0, shares[0])
	require.Less(t, shares[0.5], 1.0)
}

func TestProtocolsFitTheirTasks(t *testing.T) {
	tok, err := NewTokenizer()
	require.NoError(t, err)
	for _, s := range []Settings{
		{MaxTurns: 1, MaxTurnTokens: 1, MaxTokens: 9, Protocol: protocol.ThinkAction{}},
		{MaxTurns: 1, MaxTurnTokens: 1, MaxTokens: 9, Environment: rooms(t)},
	} {
		_, err := NewLoop(s, tok, 1)
		require.ErrorContains(t, err, "one acts and the other does not")
	}
}
