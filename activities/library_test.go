package activities

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/tool"
	"github.com/ropewalk/ropewalk/tool/tools"
)

// A step of search_qa searches the library of the recipe's environment. The record is the same whether or not the
// worker remembers its episodes, and a worker needs no sandbox for it.
func TestAStepThatSearches(t *testing.T) {
	const think = "<reasoning></reasoning>"
	engine := mover{whole: true, actions: []string{
		think + "<wiki_search>Ada</wiki_search>", think + "<wiki_search>river</wiki_search>",
		think + "<wiki_search>...</wiki_search>", think + "<wiki_search> </wiki_search>",
		think + "<wiki_search>no end<|im_end|>", think + "<answer>Velm</answer><|im_end|>",
	}}
	b, forgetful := movedBench(t, "searchqa", engine), movedBench(t, "searchqa", engine)
	statuses := map[string]int{}
	for shard := range 2 {
		assembled, turns := b.playShard(shard, false)
		again, _ := forgetful.playShard(shard, true)
		trajectories := rowsAt[schema.TrajectoryRow](b, assembled)
		require.Equal(t, trajectories, rowsAt[schema.TrajectoryRow](forgetful, again))
		require.NotEmpty(t, turns)
		for _, row := range trajectories {
			require.Contains(t, row.Gold, " | ", "a question has several golds")
			require.Nil(t, row.Excluded)
			for _, status := range []string{"Born in", "River ", "No document has these words."} {
				if strings.Contains(row.Text, status) {
					statuses[status]++
				}
			}
		}
		scored, err := do(b, verdict.ScoreRewards{Worker: b.deps}.Execute, api.ScoreInput{Scope: b.scope, Shard: shard,
			Trajectories: assembled})
		require.NoError(t, err)
		for i, r := range rowsAt[schema.RewardRow](b, scored.Manifest) {
			row := trajectories[i]
			require.Equal(t, r.ToolErrors > 0 || row.Finish == "max_turns", r.Reward < 0, "PRS: %s", row.Text)
		}
	}
	require.Len(t, statuses, 3, "%v", statuses)
}

// The tools of search_qa and of deep_research read the environment's documents by the recipe's settings.
func TestToolsReadTheLibrary(t *testing.T) {
	b := movedBench(t, "searchqa", mover{})
	c, err := b.deps.Recipes.Config(t.Context(), b.scope.Config)
	require.NoError(t, err)
	recipe := c.Recipe
	recipe.Rollout.Tools = []string{"search", "browse"}
	box, err := b.deps.Execution.Toolbox(&recipe, nil)
	require.NoError(t, err)
	got, err := box.RunEach(t.Context(), []tool.Call{
		{Tool: "search", Arguments: []byte(`{"query": "index of names"}`)},
		{Tool: "browse", Arguments: []byte(`{"document": "index of names: city"}`)},
	}, nil)
	require.NoError(t, err)
	require.Len(t, strings.Split(got[0].Stdout, "\n"), 2, "environment.settings.results is 2")
	require.Equal(t, "Index of names: city\nA register.", got[1].Stdout)
	world, err := b.deps.Recipes.World(&recipe)
	require.NoError(t, err)
	host := tools.Host{}
	require.NoError(t, b.deps.Execution.Library(&recipe, &host))
	require.Same(t, world, host.Library, "a world is opened once, and not for each batch of calls")
	recipe.Environment.Name = "calc"
	recipe.Environment.Settings = nil
	box, err = b.deps.Execution.Toolbox(&recipe, nil)
	require.NoError(t, err)
	_, err = box.RunEach(t.Context(), []tool.Call{{Tool: "search", Arguments: []byte(`{"query": "x"}`)}}, nil)
	require.ErrorContains(t, err, "the environment has no documents")
}
