package selection

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/refusal"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/resample"
	"github.com/ropewalk/ropewalk/schema"
)

func resolved(t *testing.T, set ...string) *recipes.Recipe {
	t.Helper()
	r, err := recipes.Resolve("quickstart", "", append([]string{"resample.vspo=null", "resample.roc=null"}, set...),
		nil, nil)
	require.NoError(t, err)
	return &r.Recipe
}

func reward(group, sample int, r float64) schema.RewardRow {
	return schema.RewardRow{GroupID: schema.GroupID(1, group), TrajectoryID: schema.TrajectoryID(1, group, sample),
		Reward: r, Turns: 1}
}

func TestReasonsAgree(t *testing.T) {
	require.Equal(t, schema.ReasonExcluded, string(resample.Excluded))
}

// Every sampled trajectory has a row, with its reason if it is not kept.
func TestSelectGivesEveryTrajectoryARow(t *testing.T) {
	recipe := resolved(t, "resample.reject_equal=true")
	rewards := []schema.RewardRow{reward(0, 0, 1), reward(0, 1, 0), reward(1, 0, 1), reward(1, 1, 1)}
	gone := []schema.SelectionRow{Exclude(schema.GroupID(1, 0), schema.TrajectoryID(1, 0, 2), "engine: lost")}
	rows, err := Rows(recipe, rewards, gone)
	require.NoError(t, err)
	got, err := Select(recipe, 1, rows, gone)
	require.NoError(t, err)
	require.Len(t, got.Rows, 5)
	require.Equal(t, []int{2, 3, 1, 1}, []int{got.Kept, got.Dropped, got.KeptGroups, got.DroppedGroups})
	require.Equal(t, map[string]int{schema.ReasonExcluded: 1, string(resample.ZeroVariance): 2}, got.Reasons)
	require.Nil(t, got.Masked)
	for _, r := range got.Rows {
		if r.TrajectoryID == gone[0].TrajectoryID {
			require.Equal(t, "engine: lost", *r.Excluded)
			require.Equal(t, schema.ReasonExcluded, r.Reason)
		} else {
			require.Nil(t, r.Excluded)
		}
	}
}

func TestRowsOfRounds(t *testing.T) {
	recipe := &recipes.Recipe{}
	recipe.Rollout.Prompts = 2
	recipe.Resample.Params = choice.Params{"dynamic": &resample.DynamicSampling{Tries: 3}}
	rows, err := Rows(recipe, []schema.RewardRow{reward(1, 0, 0), reward(2, 0, 0), reward(5, 0, 0)}, nil)
	require.NoError(t, err)
	require.Equal(t, []int{0, 1, 2}, []int{rows[0].Round, rows[1].Round, rows[2].Round})
	recipe.Resample.Params = nil
	rows, err = Rows(recipe, []schema.RewardRow{reward(5, 0, 0)}, nil)
	require.NoError(t, err)
	require.Zero(t, rows[0].Round)
}

func TestRowsRefuses(t *testing.T) {
	gone := []schema.SelectionRow{Exclude("g", schema.TrajectoryID(1, 0, 0), "engine: lost")}
	_, err := Rows(&recipes.Recipe{}, nil, gone)
	require.EqualError(t, err, "all 1 trajectories of the step are excluded, the first because: engine: lost")
	_, err = Rows(&recipes.Recipe{}, []schema.RewardRow{reward(0, 0, 1)}, gone)
	require.EqualError(t, err, "trajectory 00001/0000/000 has a reward and is to be excluded: engine: lost")
}

func TestSkippedRows(t *testing.T) {
	recipe := &recipes.Recipe{Rollout: recipes.Rollout{Prompts: 4, ShardGroups: 2, SamplesPerPrompt: 3}}
	var all []schema.PromptRow
	for g := range 4 {
		all = append(all, schema.PromptRow{GroupID: schema.GroupID(1, g)})
	}
	skip := func(shards ...int) (out []Skipped) {
		for _, s := range shards {
			out = append(out, Skipped{Shard: s, Stage: "sandbox", Reason: "lost\ntried: a"})
		}
		return out
	}
	rows, err := SkippedRows(recipe, skip(1), all)
	require.NoError(t, err)
	require.Len(t, rows, 2*3)
	require.Equal(t, Exclude("00001/0002", "00001/0002/000", "shard 1 was skipped after its sandbox failed: lost"),
		rows[0])
	rows, err = SkippedRows(recipe, nil, all)
	require.NoError(t, err)
	require.Empty(t, rows)
	for want, shards := range map[string][]int{
		"every shard of the step is skipped, so there is nothing to learn from: shard 0 was skipped": {0, 1},
		"shard 2 is to be skipped, and the step's 4 prompts make no such shard":                      {2},
		"shard 1 is to be skipped twice": {1, 1},
	} {
		var refused *refusal.Error
		_, err := SkippedRows(recipe, skip(shards...), all)
		require.ErrorAs(t, err, &refused)
		require.Equal(t, refusal.Unusable, refused.Kind)
		require.ErrorContains(t, err, want)
	}
}

// The filters of repetitions read the tokens that the policy wrote, turn after turn.
func TestFiltersReadWhatThePolicyWrote(t *testing.T) {
	recipe := resolved(t, "filters={overlong: true, repetition: {ngram: 2, times: 2}}")
	require.True(t, ReadsTurns(recipe))
	require.False(t, ReadsTurns(resolved(t, "filters={overlong: true}")))
	id := func(sample int) string { return schema.TrajectoryID(1, 0, sample) }
	turn := func(sample int, turn int32, tokens ...int32) schema.TurnRow {
		return schema.TurnRow{TrajectoryID: id(sample), Turn: turn, TokenIDs: tokens, LossMask: []int32{0, 1, 1}}
	}
	facts := Facts{
		Trajectories: []schema.TrajectoryRow{{TrajectoryID: id(0)}, {TrajectoryID: id(1)},
			{TrajectoryID: id(2), Finish: "length"}},
		Turns: []schema.TurnRow{turn(0, 1, 9, 1, 2), turn(0, 0, 9, 1, 2), turn(1, 0, 9, 1, 2), turn(1, 1, 9, 2, 1),
			turn(2, 0, 9, 1, 2)},
	}
	rows := []resample.Row{{TrajectoryID: id(0)}, {TrajectoryID: id(1)}, {TrajectoryID: id(2)},
		{TrajectoryID: id(3), Excluded: true}}
	require.NoError(t, facts.Fill(rows, recipe))
	require.Len(t, rows[0].Matched, 1, "1 2 occurs twice; the token before each turn is not the policy's")
	require.Empty(t, rows[1].Matched)
	require.Len(t, rows[2].Matched, 1, "it was cut off")
	require.NotEqual(t, rows[0].Matched, rows[2].Matched)
	require.Empty(t, rows[3].Matched)
	require.ErrorContains(t, facts.Fill([]resample.Row{{TrajectoryID: id(4)}}, recipe),
		"trajectory 00001/0000/004 has a reward, and is not among those")
	void := resolved(t, "filters={void_turns: true}")
	require.ErrorContains(t, facts.Fill(rows[:1], void),
		"filters.void_turns needs to know what the turns of trajectory 00001/0000/000 did")
}

// A group is mixed if its turns are of several versions, whichever trajectories they are of.
func TestMixedGroups(t *testing.T) {
	recipe := resolved(t, "pipeline={in_flight: true, mixed_groups: drop}", "loss.old_log_probs=recompute",
		"rollout.mode=interleaved")
	require.True(t, ReadsTurns(recipe))
	require.True(t, ReadsFacts(recipe))
	require.Equal(t, "no mixed groups", Chain(recipe, 1).String())
	facts := Facts{}
	var rows []resample.Row
	for g, versions := range [][2]string{{"a", "a"}, {"a", "b"}, {"b", "b"}} {
		for sample, v := range versions {
			id := schema.TrajectoryID(1, g, sample)
			facts.Trajectories = append(facts.Trajectories, schema.TrajectoryRow{TrajectoryID: id})
			for turn := range int32(2) {
				facts.Turns = append(facts.Turns, schema.TurnRow{GroupID: schema.GroupID(1, g), TrajectoryID: id,
					Turn: turn, PolicyVersion: v})
			}
			rows = append(rows, resample.Row{GroupID: schema.GroupID(1, g), TrajectoryID: id, Reward: float64(sample)})
		}
	}
	rows[2].Excluded = true
	require.NoError(t, facts.Fill(rows, recipe))
	var mixed []bool
	for _, r := range rows {
		mixed = append(mixed, r.Mixed)
	}
	require.Equal(t, []bool{false, false, true, true, false, false}, mixed)
	kept := resolved(t, "pipeline={in_flight: true}", "loss.old_log_probs=recompute", "rollout.mode=interleaved")
	require.False(t, ReadsFacts(kept))
	require.NoError(t, facts.Fill(rows, kept))
	require.False(t, rows[3].Mixed)
}

func TestInformative(t *testing.T) {
	require.Equal(t, 1, Informative([]schema.RewardRow{reward(0, 0, 1), reward(0, 1, 1), reward(1, 0, 1),
		reward(1, 1, 0)}))
	require.Zero(t, Informative(nil))
}
