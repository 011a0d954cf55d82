package activities

import (
	"bytes"
	"context"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/evaluate"
	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/environments"
	"github.com/ropewalk/ropewalk/env/sokoban"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
)

// hostile is sokoban with a step that misbehaves on the action down, and an expert that may.
type hostile struct {
	*sokoban.Sokoban
	step  func(ctx context.Context, s env.State, t env.Transition) (env.State, env.Transition, error)
	solve func(ctx context.Context) ([]string, error)
}

func (h hostile) Step(ctx context.Context, s env.State, action string) (env.State, env.Transition, error) {
	next, t, err := h.Sokoban.Step(ctx, s, action)
	if err != nil || h.step == nil || !strings.Contains(action, "down") {
		return next, t, err
	}
	return h.step(ctx, next, t)
}

func (h hostile) Solve(ctx context.Context, s env.State) ([]string, error) {
	if h.solve == nil {
		return h.Sokoban.Solve(ctx, s)
	}
	return h.solve(ctx)
}

// playing makes recipes that name sokoban open a hostile one.
func playing(t *testing.T, h hostile) {
	t.Helper()
	at := slices.IndexFunc(environments.All, func(d env.Declaration) bool { return d.Name == "sokoban" })
	plain := environments.All[at].Open
	t.Cleanup(func() { environments.All[at].Open = plain })
	environments.All[at].Open = func(o env.Options) (env.Environment, error) {
		e, err := plain(o)
		if err != nil {
			return nil, err
		}
		own := h
		own.Sokoban = e.(*sokoban.Sokoban)
		return own, nil
	}
}

// misdeeds are steps that break the contract of environments, and what the record says of them.
var misdeeds = map[string]struct {
	step func(ctx context.Context, s env.State, t env.Transition) (env.State, env.Transition, error)
	why  string
}{
	"panics": {func(context.Context, env.State, env.Transition) (env.State, env.Transition, error) {
		panic("no such cell")
	}, "no such cell"},
	"NaN": {func(_ context.Context, s env.State, t env.Transition) (env.State, env.Transition, error) {
		t.Reward = math.NaN()
		return s, t, nil
	}, "the reward is NaN"},
	"floods text": {func(_ context.Context, s env.State, t env.Transition) (env.State, env.Transition, error) {
		t.Observation = env.Seen(string(bytes.Repeat([]byte("x"), 2<<20)))
		return s, t, nil
	}, "the observation has 2097152 bytes"},
	"ends after success": {func(_ context.Context, s env.State, t env.Transition) (env.State, env.Transition, error) {
		t.Success, t.Done = true, false
		return s, t, nil
	}, "it reports success before the episode's end"},
}

var hostileMoves = []string{"up", "down", "left", "right", "sing", "up", "left", "right"}

// Both modes of rollouts exclude the trajectories on which the environment misbehaves, with its reason, commit the same
// rows, and give those trajectories no reward.
func TestHostileEnvironmentsInBothModes(t *testing.T) {
	for name, c := range misdeeds {
		t.Run(name, func(t *testing.T) {
			playing(t, hostile{step: c.step})
			staged := worldBench(t, "sokoban", hostileMoves)
			assembled, _ := staged.playShard(0, false)
			b := worldBench(t, "sokoban", hostileMoves)
			out, err := do(b, episodes.RunEpisodes{Worker: b.deps}.Execute,
				api.EpisodesInput{Scope: b.scope, Prompts: b.prompts, Policy: b.policy, MaxTurns: 20})
			require.NoError(t, err)
			require.Equal(t, assembled, out.Assembled, "the modes commit the same bytes")
			paid := map[string]bool{}
			for _, r := range rowsAt[schema.RewardRow](b, out.Scored.Manifest) {
				require.False(t, math.IsNaN(r.Reward))
				paid[r.TrajectoryID] = true
			}
			excluded := 0
			for _, r := range rowsAt[schema.TrajectoryRow](b, out.Assembled) {
				require.Equal(t, r.Excluded == nil, paid[r.TrajectoryID], r.TrajectoryID)
				if r.Excluded != nil {
					excluded++
					require.Contains(t, *r.Excluded, c.why)
				}
			}
			require.Positive(t, excluded)
			require.NotEmpty(t, paid)
		})
	}
}

// An evaluation records what the environment broke on, and counts it neither as solved nor as failed.
func TestHostileEnvironmentsInEvaluations(t *testing.T) {
	for name, c := range misdeeds {
		t.Run(name, func(t *testing.T) {
			playing(t, hostile{step: c.step})
			b := worldBench(t, "sokoban", hostileMoves)
			in := api.EvaluateInput{Scope: b.scope, Tag: "step", Policy: b.policy}
			out, err := do(b, evaluate.Evaluate{Worker: b.deps}.Execute, in)
			require.NoError(t, err)
			counted := map[string]bool{}
			for _, r := range rowsAt[schema.EvaluationRow](b, out.Manifest) {
				counted[*r.TrajectoryID] = true
			}
			excluded := 0
			for _, r := range rowsAt[schema.EvaluationTrajectoryRow](b, out.Manifest) {
				require.Equal(t, r.Excluded == nil, counted[r.TrajectoryID], r.TrajectoryID)
				if r.Excluded != nil {
					excluded++
					require.Contains(t, *r.Excluded, c.why)
				}
			}
			require.Positive(t, excluded)
			require.Equal(t, len(counted), out.Summary.Trajectories)
			m, err := b.deps.Record.Read(t.Context(), out.Manifest)
			require.NoError(t, err)
			require.EqualValues(t, excluded, m.Stats[schema.StatExcluded])
		})
	}
}

// An environment that breaks on every episode fails the evaluation.
func TestAnEvaluationOfNothingFails(t *testing.T) {
	playing(t, hostile{step: misdeeds["panics"].step})
	b := worldBench(t, "sokoban", []string{"down"})
	_, err := do(b, evaluate.Evaluate{Worker: b.deps}.Execute, api.EvaluateInput{Scope: b.scope, Tag: "step",
		Policy: b.policy})
	require.ErrorContains(t, err, "no such cell")
}
