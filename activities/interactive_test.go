package activities

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/data"
	"github.com/ropewalk/ropewalk/activities/episodes"
	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/resource"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/batch"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/planning"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
)

// mover is an engine whose moves depend only on each row's stream; sometimes it writes an invalid action.
type mover struct {
	fakeEngine
	tok     *tokenizer.Tokenizer
	actions []string
	whole   bool // the actions are whole responses
}

func (m *mover) Generate(_ context.Context, req policy.GenerateRequest) (policy.Generated, error) {
	var g policy.Generated
	for _, stream := range req.Streams {
		action := m.actions[stream>>7%uint64(len(m.actions))]
		if !m.whole {
			action = "<think></think><action>" + action + "</action><|im_end|>"
		}
		ids := m.tok.Encode(action)
		g.Tokens = append(g.Tokens, ids)
		g.LogProbs, g.Entropies = append(g.LogProbs, make([]float32, len(ids))),
			append(g.Entropies, make([]float32, len(ids)))
		g.Finish = append(g.Finish, policy.FinishStop)
	}
	return g, nil
}

// worlds are the recipes with an interactive environment. Their actions include an invalid one.
var worlds = []struct {
	recipe  string
	actions []string
	shared  bool // different states show the same
}{
	{"sokoban", []string{"up", "down", "left", "right", "sing"}, false},
	{"household", []string{"go to cabinet 1", "open cabinet 1", "go to sinkbasin 1", "go to toilet 1",
		"go to countertop 1", "take cloth 1 from countertop 1", "take soapbar 1 from cabinet 1", "sing"}, true},
}

// worldBench is the inside of a worker with a run of a recipe and its first step's prompts.
func worldBench(t *testing.T, recipe string, actions []string) *stepBench {
	t.Helper()
	return movedBench(t, recipe, mover{actions: actions})
}

// movedBench is worldBench with an engine.
func movedBench(t *testing.T, recipe string, m mover, set ...string) *stepBench {
	t.Helper()
	resolved, err := recipes.Resolve(recipe, "", append([]string{"rollout.prompts=4", "rollout.samples_per_prompt=6",
		"rollout.shard_groups=2"}, set...), nil, nil)
	require.NoError(t, err)
	tok, err := planning.TokenizerOf(&resolved.Recipe)
	require.NoError(t, err)
	engine := &m
	engine.tok = tok
	deps, err := New(stage.Options{Store: mem.New(), Trainer: engine, Rollout: engine, Tier: sandbox.TierFull,
		Code: strings.Repeat("c", 64), Scratch: t.TempDir()})
	require.NoError(t, err)
	b := &stepBench{t: t, deps: deps, scope: api.Scope{Run: "r", Step: 1},
		policy: api.PolicyRef{Digest: strings.Repeat("e", 64)}}
	published(deps, b.policy.Digest)
	b.scope.Config, err = commitRecipe(t.Context(), deps, "r", schema.AtInit("r", schema.StagePrepare),
		resolved, enginepool.Choice{Kind: "cpu"})
	require.NoError(t, err)
	out, err := do(b, data.NewSelectPrompts(deps).Execute, api.PromptsInput{Scope: b.scope})
	require.NoError(t, err)
	b.prompts = out.Manifest
	b.policy.Manifest = b.prompts // lineage requires some manifest; any will do here
	return b
}

// playShard plays a shard's episodes to completion. If forget is set, the worker loses what it holds before each
// activity.
func (b *stepBench) playShard(shard int, forget bool) (assembled schema.Ref, turns []schema.Ref) {
	b.t.Helper()
	last := api.Past{}
	for turn := 0; ; turn++ {
		if forget {
			b.deps.Episodes = resource.NewEpisodes(resource.EpisodeBytes)
		}
		out, err := do(b, episodes.GenerateRollouts{Worker: b.deps}.Execute, api.GenerateInput{Scope: b.scope,
			Past: last, Shard: shard, Turn: turn, Prompts: b.prompts, Policy: b.policy})
		require.NoError(b.t, err)
		turns, last = append(turns, out.Manifest), api.Past{Last: out.Manifest}
		if out.Open > 0 { // a summary
			continue
		}
		if out.Calls == 0 {
			break
		}
		if forget {
			b.deps.Episodes = resource.NewEpisodes(resource.EpisodeBytes)
		}
		done, err := do(b, episodes.ExecuteToolCalls{Worker: b.deps}.Execute, api.ToolsInput{Scope: b.scope, Past: last,
			Shard: shard, Turn: turn, Prompts: b.prompts})
		require.NoError(b.t, err)
		require.Equal(b.t, out.Calls, done.Calls)
		last = api.Past{Last: done.Manifest}
	}
	out, err := do(b, episodes.AssembleTrajectories{Worker: b.deps}.Execute, api.AssembleInput{Scope: b.scope,
		Past: last, Shard: shard, Prompts: b.prompts})
	require.NoError(b.t, err)
	return out.Manifest, turns
}

// A step in an interactive environment, from prompts to advantages. The record's turns, rewards and success of a
// trajectory are those of the environment, whether or not the worker remembers its episodes.
func TestAnInteractiveStep(t *testing.T) {
	for _, w := range worlds {
		t.Run(w.recipe, func(t *testing.T) {
			interactiveStep(t, worldBench(t, w.recipe, w.actions), worldBench(t, w.recipe, w.actions), w.shared)
		})
	}
}

func interactiveStep(t *testing.T, b, forgetful *stepBench, shared bool) {
	var rewards, turnStages []schema.Ref
	byTurn := map[int][]schema.Ref{}
	for shard := range 2 {
		assembled, turns := b.playShard(shard, false)
		again, _ := forgetful.playShard(shard, true)
		trajectories := rowsAt[schema.TrajectoryRow](b, assembled)
		require.Equal(t, trajectories, rowsAt[schema.TrajectoryRow](forgetful, again))
		steps, made, err := b.deps.Transitions(t.Context(), assembled)
		require.NoError(t, err)
		same, _, err := forgetful.deps.Transitions(t.Context(), again)
		require.NoError(t, err)
		require.Equal(t, steps, same)
		scored, err := do(b, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope, Shard: shard,
			Trajectories: assembled})
		require.NoError(t, err)
		m, err := b.deps.Record.Read(t.Context(), scored.Manifest)
		require.NoError(t, err)
		require.Subset(t, m.Inputs, made, "the rewards name the transitions that they were made from")
		paid, solved := map[string]float64{}, map[string]bool{}
		for _, s := range steps {
			paid[s.TrajectoryID] += s.Reward
			solved[s.TrajectoryID] = solved[s.TrajectoryID] || s.Success
		}
		for _, r := range rowsAt[schema.RewardRow](b, scored.Manifest) {
			require.InDelta(t, paid[r.TrajectoryID], r.Reward, 1e-9)
			require.Equal(t, solved[r.TrajectoryID], r.Success)
		}
		rewards = append(rewards, scored.Manifest)
		for turn, ref := range turns {
			byTurn[turn] = append(byTurn[turn], ref)
		}
	}
	reward := b.stage(schema.StageReward, -1, rewards...)
	for turn := range len(byTurn) {
		turnStages = append(turnStages, b.stage(schema.StageRollout, turn, byTurn[turn]...))
	}
	selected, err := do(b, learn.Resample{Worker: b.deps}.Execute, b.rewarded(reward))
	require.NoError(t, err)
	in := b.rewarded(reward, api.StageRef{Stage: schema.StageResample, Ref: selected.Manifest})
	for _, ref := range turnStages {
		in.Made = append(in.Made, api.StageRef{Stage: schema.StageRollout, Ref: ref})
	}
	out, err := do(b, learn.ComputeAdvantages{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	turns := rowsAt[schema.TurnRow](b, turnStages...)
	require.Equal(t, len(turns), out.Rows, "a row for each turn")
	m, err := b.deps.Record.Read(t.Context(), out.Manifest)
	require.NoError(t, err)
	require.Contains(t, m.Stats, batch.StatShared)
	if !shared {
		require.Zero(t, m.Stats[batch.StatShared], "a room shows all of its state")
	}
	rows, _, err := b.deps.BatchOf(t.Context(), m, schema.Batch, schema.DecodeBatch)
	require.NoError(t, err)
	tokens := map[string][]int32{}
	for _, turn := range turns {
		tokens[turn.TrajectoryID+string(rune(turn.Turn))] = turn.TokenIDs
	}
	varied := false
	for _, row := range rows {
		require.Equal(t, tokens[row.TrajectoryID+string(rune(*row.Turn))], row.TokenIDs,
			"a row is what the policy saw and wrote at its turn, and nothing else")
		for _, a := range row.Advantages {
			require.False(t, math.IsNaN(float64(a)))
			varied = varied || a != 0
		}
	}
	require.True(t, varied)
}
