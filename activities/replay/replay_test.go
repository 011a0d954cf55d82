package replay

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

func place(stage string, gen int) schema.Place { return schema.At("r", 2, stage).WithGen(gen) }

// A step without a head has what the run itself made last: no replay's generation counts.
func TestLatestOfEachStage(t *testing.T) {
	places := []schema.Place{
		place(schema.StageRollout, 0).WithTurn(1), place(schema.StageRollout, 0).WithTurn(0),
		place(schema.StageRollout, 0).WithTurn(0).WithShard(0),
		place(schema.StageReward, 1), place(schema.StageReplay, 1), place(schema.StageReward, 0),
		place(schema.StageResample, 2), place(schema.StageResample, 0),
	}
	m := NewMade("r", 2, schema.Ref{Key: "recipe"}, places)
	require.Equal(t, 3, m.Next)
	require.Equal(t, []schema.Place{place(schema.StageReplay, 1)}, m.Claims)
	require.Equal(t, map[string][]schema.Place{
		schema.StageRollout:  {place(schema.StageRollout, 0).WithTurn(0), place(schema.StageRollout, 0).WithTurn(1)},
		schema.StageReward:   {place(schema.StageReward, 0)},
		schema.StageResample: {place(schema.StageResample, 2)},
	}, m.Latest(places))
	require.Equal(t, 1, NewMade("r", 2, schema.Ref{}, nil).Next)
}

func TestAMissingStageIsTheCallersMistake(t *testing.T) {
	m := NewMade("r", 2, schema.Ref{}, nil)
	_, err := m.One(schema.StageAssemble, schema.StageReward)
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "step: step 2 of run r has not committed assemble, which reward reads")
}

// A replay continues through the optional stages that the step has, if it is asked to.
func TestAPlanFollowsTheStep(t *testing.T) {
	pure := stages.Pure()
	require.Equal(t, schema.StageBuffer, pure[len(pure)-1])
	some := []string{schema.StageResample, schema.StageAdvantage}
	made := &Made{Recipe: schema.Ref{Key: "recipe"}, Refs: map[string][]schema.Ref{schema.StageBuffer: {{Key: "b"}}}}
	require.Equal(t, some, NewPlan(made, some, false).Stages)
	p := NewPlan(made, some, true)
	require.Equal(t, append(some, schema.StageBuffer), p.Stages)
	require.True(t, p.Has(schema.StageBuffer))
	require.False(t, p.Has(schema.StageReward))
	made.Refs = nil
	require.Equal(t, some, NewPlan(made, some, true).Stages)

	p.Recipes = []schema.Ref{{Key: "amended"}}
	p.Read(schema.Rewards, schema.Ref{Key: "rewards"})
	p.Read(schema.Turns, schema.Ref{Key: "turn 0"}, schema.Ref{Key: "turn 1"})
	require.Equal(t, []schema.Ref{{Key: "recipe"}, {Key: "amended"}, {Key: "rewards"}, {Key: "turn 0"},
		{Key: "turn 1"}}, p.Inputs())
	require.Equal(t, Read{schema.Ref{Key: "turn 1"}, schema.Turns}, p.Reads()[2])
}

func TestRecipe(t *testing.T) {
	resolved, err := recipes.Resolve("quickstart", "", nil, nil, nil)
	require.NoError(t, err)
	apply := func(replayed []string, set ...string) (*recipes.Recipe, error) {
		return Recipe("r", &resolved.Recipe, set, replayed)
	}
	got, err := apply([]string{schema.StageResample}, "resample.roc=null")
	require.NoError(t, err)
	require.Nil(t, got.Resample.RoC())
	require.NotNil(t, resolved.Recipe.Resample.RoC(), "the committed recipe stays as it is")

	_, err = apply([]string{schema.StageAdvantage}, "reward.fallback=true")
	require.ErrorContains(t, err, "--set reward.fallback=true: no replayed stage reads it; advantage reads advantage.*")
	_, err = apply([]string{schema.StageBuffer})
	var bad badinput.Error
	require.ErrorAs(t, err, &bad)
	require.ErrorContains(t, err, "buffer runs only if the recipe has `replay`, and that of run r does not")
}

func TestCompare(t *testing.T) {
	shards := func(digests ...string) (out []schema.ShardInfo) {
		for i, d := range digests {
			out = append(out, schema.ShardInfo{Digest: d, Table: []schema.Table{schema.Rewards, schema.Selection}[i%2]})
		}
		return out
	}
	require.Equal(t, api.StageComparison{Old: "a", New: "a", Same: true, Shards: 1}, Compare(shards("a"), shards("a")))
	require.Equal(t, api.StageComparison{Old: "a", New: "b", Differs: 1, Shards: 1}, Compare(shards("a"), shards("b")))
	c := Compare(shards("a", "b"), shards("a", "c", "d"))
	require.False(t, c.Same)
	require.Equal(t, 2, c.Differs)
	require.Equal(t, schema.Digest([]byte("0 a\n1 b\n")), c.Old)

	require.Empty(t, Differences(shards("a", "b"), shards("a", "b")))
	require.Equal(t, []Different{{Digest: "b"}}, Differences(shards("a"), shards("b")))
	require.Equal(t, []Different{{Table: schema.Selection}}, Differences(shards("a", "b"), shards("a")))
}
