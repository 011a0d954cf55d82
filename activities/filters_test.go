package activities

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/learn"
	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/internal/enginepool"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
)

// filterBench is a step of two groups of four trajectories with something for each filter: sample 1 was cut off,
// sample 2 has a void turn, and sample 3 repeats itself and is unreadable in the second group.
func filterBench(t *testing.T, set ...string) (*stepBench, api.StageInput) {
	t.Helper()
	b := stepOf(t, nil, nil)
	recipe, err := recipes.Resolve("quickstart", "", append([]string{"resample.vspo=null", "resample.roc=null"},
		set...), nil, nil)
	require.NoError(t, err)
	require.Empty(t, recipe.Recipe.Planned())
	b.scope.Run = "f"
	b.scope.Config, err = commitRecipe(t.Context(), b.deps, "f", schema.AtInit("f", schema.StagePrepare),
		recipe, enginepool.Choice{Kind: "cpu"})
	require.NoError(t, err)
	var turns []schema.TurnRow
	var trajectories []schema.TrajectoryRow
	var rewards []schema.RewardRow
	for n := range 8 {
		group, id := schema.GroupID(1, n/4), schema.TrajectoryID(1, n/4, n%4)
		turn := schema.TurnRow{GroupID: group, TrajectoryID: id, ContextTokens: 2, TokenIDs: []int32{5, 5},
			LossMask: []int32{0, 0}, Finish: "stop", PolicyVersion: "p"}
		for k := range int32(12) {
			token := k
			if n%4 == 3 {
				token = k % 2
			}
			turn.TokenIDs, turn.LossMask = append(turn.TokenIDs, token), append(turn.LossMask, 1)
		}
		turn.LogProbs, turn.Entropies = make([]float32, 14), make([]float32, 14)
		row := schema.TrajectoryRow{
			GroupID: group, TrajectoryID: id, ProblemID: "p", Source: "rollout", Turns: 1, Tokens: 14,
			ResponseTokens: 12, Finish: "answered", Text: "text",
			BegunCalls: new(int32), ParsedCalls: new(int32), ToolTurns: new(int32), MalformedTurns: new(int32),
			VoidTurns: new(int32),
		}
		switch n % 4 {
		case 1:
			row.Finish = "length"
		case 2:
			row.VoidTurns = new(int32(1))
		case 3:
			if n > 4 {
				row.Text = "te\uFFFDt"
			}
		}
		reward := schema.RewardRow{GroupID: group, TrajectoryID: id, Verdict: "wrong"}
		if n == 0 || n == 2 || n == 3 { // the second group's rewards are all equal
			reward.Reward = 1
		}
		turns, trajectories, rewards = append(turns, turn), append(trajectories, row), append(rewards, reward)
	}
	shard := func(stage string) schema.Place { return schema.At("f", 1, stage).WithShard(0) }
	rolled := commitRows(b, shard(schema.StageRollout).WithTurn(0), turns)
	assembled := commitRows(b, shard(schema.StageAssemble), trajectories, rolled)
	scored := commitRows(b, shard(schema.StageReward), rewards, assembled)
	return b, b.rewarded(b.stage(schema.StageReward, -1, scored))
}

func TestFiltersMask(t *testing.T) {
	for name, c := range map[string]struct {
		set    []string
		masked map[int]string
		inputs []string
	}{
		"overlong": {[]string{"filters.overlong=true"}, map[int]string{1: "overlong", 5: "overlong"},
			[]string{schema.StageAssemble}},
		"void turns": {[]string{"filters.void_turns=true"}, map[int]string{2: "void_turn", 6: "void_turn"},
			[]string{schema.StageAssemble}},
		"unreadable": {[]string{"filters.unreadable=true"}, map[int]string{7: "unreadable"},
			[]string{schema.StageAssemble}},
		"repetition": {[]string{"filters.repetition={ngram: 3, times: 4}"},
			map[int]string{3: "repetitive", 7: "repetitive"}, []string{schema.StageAssemble, schema.StageRollout}},
		"rarer": {[]string{"filters.repetition={ngram: 3, times: 6}"}, nil,
			[]string{schema.StageAssemble, schema.StageRollout}},
		"all": {
			[]string{"filters={overlong: true, void_turns: true, unreadable: true, " +
				"repetition: {ngram: 3, times: 4}}"},
			map[int]string{1: "overlong", 5: "overlong", 2: "void_turn", 6: "void_turn", 3: "repetitive",
				7: "repetitive"}, []string{schema.StageAssemble, schema.StageRollout}},
		"none": {nil, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			b, in := filterBench(t, c.set...)
			out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
			require.NoError(t, err)
			require.Equal(t, 8, out.Kept)
			masked := 0
			for _, n := range out.Masked {
				masked += n
			}
			require.Equal(t, len(c.masked), masked)
			for i, row := range rowsAt[schema.SelectionRow](b, out.Manifest) {
				require.True(t, row.Kept)
				require.Empty(t, row.Reason)
				require.Equal(t, []float64{0.75, 0}[i/4], row.GroupMean, "masked or not, a reward counts")
				if want, ok := c.masked[i]; ok {
					require.Equal(t, want, *row.Masked)
				} else {
					require.Nil(t, row.Masked)
				}
			}
			m, err := b.deps.Record.Read(t.Context(), out.Manifest)
			require.NoError(t, err)
			require.Len(t, m.Inputs, 2+len(c.inputs))
			for i, stage := range c.inputs {
				require.True(t, record.IsOfStage(m.Inputs[2+i], stage), m.Inputs)
			}
		})
	}
}

func TestChainDropsGroups(t *testing.T) {
	dropped := func(set ...string) map[string]int {
		b, in := filterBench(t, set...)
		out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
		require.NoError(t, err)
		return out.Reasons
	}
	require.Equal(t, map[string]int{"zero_variance": 4}, dropped("resample.reject_equal=true"))
	require.Equal(t, map[string]int{"low_variance": 4}, dropped("resample.low_variance={keep: 0.5}"))
	require.Equal(t, map[string]int{"low_variance": 4},
		dropped("resample.low_variance={keep: 0.5, reverse: true, std: population}"))
	// A row may be dropped before the masks are applied.
	b, in := filterBench(t, "resample.reject_equal=true", "filters.overlong=true")
	out, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"overlong": 1}, out.Masked)
}

func TestFiltersNeedFacts(t *testing.T) {
	b, in := filterBench(t, "filters.void_turns=true")
	row := schema.TrajectoryRow{GroupID: schema.GroupID(1, 0), TrajectoryID: schema.TrajectoryID(1, 0, 0),
		ProblemID: "p", Source: "rollout", Finish: "answered"}
	assembled := commitRows(b, schema.At("f", 2, schema.StageAssemble).WithShard(0), []schema.TrajectoryRow{row})
	reward := schema.RewardRow{GroupID: row.GroupID, TrajectoryID: row.TrajectoryID, Verdict: "wrong"}
	in.Step = 2
	b.scope.Step = 2
	in.Made[0].Ref = b.stage(schema.StageReward, -1, commitRows(b, schema.At("f", 2, schema.StageReward).WithShard(0),
		[]schema.RewardRow{reward}, assembled))
	_, err := do(b, learn.Resample{Worker: b.deps}.Execute, in)
	require.ErrorContains(t, err, "filters.void_turns needs to know what the turns of trajectory 00001/0000/000 did")
}
