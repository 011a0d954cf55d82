package rollout

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/rollout/protocol"
)

// acting begins one episode for each action and absorbs a response with it.
func acting(t *testing.T, l *Loop, actions ...string) []*Episode {
	t.Helper()
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

// A hostile result excludes its own episode, and the record keeps nothing of it.
func TestHostileResultsExclude(t *testing.T) {
	flood := strings.Repeat("x", maxSeenBytes/2+1)
	for name, c := range map[string]struct {
		change func(s env.State, t *env.Transition) env.State
		why    string
	}{
		"infinite reward": {func(s env.State, t *env.Transition) env.State {
			t.Reward = math.Inf(1)
			return s
		}, "the reward is +Inf"},
		"flood of text": {func(s env.State, t *env.Transition) env.State {
			t.Observation.Parts = []env.Part{{Kind: env.PartText, Text: flood}, {Kind: env.PartText, Text: flood}}
			return s
		}, " bytes, the limit is 1048576"},
		"flood of actions": {func(s env.State, t *env.Transition) env.State {
			t.Observation.Admissible = make([]string, maxSeenPieces)
			return s
		}, "the observation has 65537 parts and actions"},
		"large state": {func(_ env.State, _ *env.Transition) env.State {
			return make(env.State, maxStateBytes+1)
		}, "the state has 1048577 bytes"},
		"no state": {func(env.State, *env.Transition) env.State { return nil }, "it returned no state"},
		"broken UTF-8": {func(s env.State, t *env.Transition) env.State {
			t.Observation.Parts = []env.Part{{Kind: env.PartText, Text: "a\xff"}}
			return s
		}, "part 0 of the observation is not UTF-8"},
	} {
		t.Run(name, func(t *testing.T) {
			world := faulty{rooms(t), func(s env.State, got env.Transition) (env.State, env.Transition, error) {
				s = c.change(s, &got)
				return s, got, nil
			}}
			l := actingLoop(t, world, 0)
			some := acting(t, l, "up", "down")
			require.NoError(t, l.Step(t.Context(), some))
			require.Contains(t, some[0].Excluded, c.why)
			require.Equal(t, FinishExcluded, some[0].Finish)
			require.NotEqual(t, FinishExcluded, some[1].Finish)
			got := some[0].Turns[0].Transition
			require.Less(t, got.size(), 100, "what was refused is kept")
			require.Zero(t, got.Reward)
			require.ErrorIs(t, l.Step(t.Context(), acting(t, l, "up", "up")), ErrEnvironment)
		})
	}
}

// A call that does not return in time excludes its episode. The calls that are left behind are bounded, and what they
// return late is no one's result.
func TestCallsThatNeverReturn(t *testing.T) { synctest.Test(t, callsThatNeverReturn) }

// callsThatNeverReturn runs on its own clock, so that only the calls that are held reach their limit.
func callsThatNeverReturn(t *testing.T) {
	release := make(chan struct{})
	world := faulty{rooms(t), func(s env.State, got env.Transition) (env.State, env.Transition, error) {
		<-release
		return s, got, nil
	}}
	l := actingLoop(t, world, 0)
	l.guard.limit = 100 * time.Millisecond
	var late []*Episode
	var want []Transition // of each
	for range maxAbandoned {
		episodes := acting(t, actingLoop(t, rooms(t), 0), "up")
		require.NoError(t, l.Step(t.Context(), episodes))
		require.Contains(t, episodes[0].Excluded, "a call has not returned within 100ms")
		require.Empty(t, episodes[0].Turns[0].Transition.Seen.Parts)
		late, want = append(late, episodes[0]), append(want, *episodes[0].Turns[0].Transition)
	}
	_, err := l.Begin(t.Context(), Identity{}, env.Task{})
	require.ErrorIs(t, err, ErrEnvironment)
	require.ErrorContains(t, err, "16 earlier calls have not returned")
	close(release)
	require.Eventually(t, func() bool { return l.guard.abandoned.Load() == 0 }, time.Minute, time.Millisecond)
	for i, e := range late {
		require.Equal(t, want[i], *e.Turns[0].Transition, "late answers change nothing")
		require.Equal(t, FinishExcluded, e.Finish)
	}
	l.guard.limit = callLimit
	episodes := acting(t, actingLoop(t, rooms(t), 0), "up")
	require.NoError(t, l.Step(t.Context(), episodes))
	require.Empty(t, episodes[0].Excluded, "the world answers again")
	require.NotEmpty(t, episodes[0].Turns[0].Transition.Seen.Parts)
}

// mute is an environment whose instruction never comes.
type mute struct {
	env.Environment
	held chan struct{}
}

func (m mute) Instruction(env.Task) (string, error) {
	<-m.held
	return "", nil
}

// A stage that ends does not wait for the environment's instruction until the limit of one call.
func TestAnInstructionEndsWithItsStage(t *testing.T) {
	held := make(chan struct{})
	defer close(held)
	l := actingLoop(t, mute{rooms(t), held}, 0)
	l.guard.limit = time.Minute
	task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = l.Begin(ctx, Identity{}, task)
	require.ErrorIs(t, err, context.Canceled)
	require.NotErrorIs(t, err, ErrEnvironment)
}

// ending is an environment whose episodes never end, and whose Reset can break.
type ending struct {
	env.Environment
	reset func(env.State, env.Observation) (env.State, env.Observation)
}

func (e ending) Reset(ctx context.Context, task env.Task) (env.State, env.Observation, error) {
	state, seen, err := e.Environment.Reset(ctx, task)
	if e.reset != nil {
		state, seen = e.reset(state, seen)
	}
	return state, seen, err
}

func (e ending) Step(_ context.Context, state env.State, _ string) (env.State, env.Transition, error) {
	return state, env.Transition{Observation: env.Observation{Parts: []env.Part{{Kind: env.PartText, Text: "on"}}}}, nil
}

// The loop's limit of turns ends the episodes of an environment that never does, without success.
func TestEpisodesThatNeverEnd(t *testing.T) {
	l := actingLoop(t, ending{Environment: rooms(t)}, 0)
	episodes := acting(t, l, "up")
	e := episodes[0]
	for turn := 1; ; turn++ {
		require.NoError(t, l.Step(t.Context(), episodes))
		if !e.AwaitsResponse() {
			require.Equal(t, l.settings.MaxTurns, turn)
			break
		}
		text, _ := protocol.ThinkAction{}.Write(env.Move{Action: "up"})
		l.absorb(t.Context(), e, l.scripted(text))
	}
	require.Equal(t, FinishMaxTurns, e.Finish)
	require.False(t, e.Success())
}

// A first observation that cannot be used is an error: there is no episode that could be excluded.
func TestBrokenResetsAreErrors(t *testing.T) {
	task, err := rooms(t).Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1})
	require.NoError(t, err)
	for why, reset := range map[string]func(env.State, env.Observation) (env.State, env.Observation){
		"no room": func(env.State, env.Observation) (env.State, env.Observation) { panic(errors.New("no room")) },
		"the state has": func(_ env.State, o env.Observation) (env.State, env.Observation) {
			return make(env.State, maxStateBytes+1), o
		},
		"the observation has": func(s env.State, o env.Observation) (env.State, env.Observation) {
			o.Parts = make([]env.Part, maxSeenPieces+1)
			return s, o
		},
	} {
		_, err := actingLoop(t, ending{rooms(t), reset}, 0).Begin(t.Context(), Identity{}, task)
		require.ErrorIs(t, err, ErrEnvironment)
		require.ErrorContains(t, err, why)
	}
}
