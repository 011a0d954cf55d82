package pipelinetest_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// The pure stage of CONTRIBUTING.md, with a table of its own. In the tree its parts are entries of schema/declared.go,
// of schema/stages/all.go and of its topic's register.go.

const (
	stageSpread                = "spread"
	measureSpread              = "MeasureSpread"
	spreads       schema.Table = "spreads"
)

// spreadRow says how far the rewards of a group spread.
type spreadRow struct {
	GroupID string  `parquet:"group_id,dict" doc:"the group"`
	Rewards int32   `parquet:"rewards" doc:"its trajectories that have a reward"`
	Spread  float64 `parquet:"spread,split" doc:"the largest of their rewards less the smallest"`
}

func (r spreadRow) Validate() error {
	if r.Rewards < 1 || r.Spread < 0 {
		return fmt.Errorf("spread: %v of %d rewards", r.Spread, r.Rewards)
	}
	return nil
}

func (r spreadRow) Position() schema.Position { return schema.InTrajectory(r.GroupID, "") }

var spreadDeclared = stages.Stage{
	Name: stageSpread, Phase: stages.Step,
	Doc:        "measures how far the rewards of each group spread",
	Activities: []stages.Activity{{Name: measureSpread, Queue: stages.CPU, Limit: time.Minute}},
	Reads:      []stages.Read{{Stage: schema.StageReward, Tables: []schema.Table{schema.Rewards}}},
	Writes:     []schema.Table{spreads},
	Pure:       true, Recipe: []string{"reward"},
}

// spreadsOf is what the stage computes.
func spreadsOf(rewards []schema.RewardRow) (out []spreadRow) {
	low, high, at := map[string]float64{}, map[string]float64{}, map[string]int{}
	for _, r := range rewards {
		i, known := at[r.GroupID]
		if !known {
			i, low[r.GroupID], high[r.GroupID] = len(out), r.Reward, r.Reward
			at[r.GroupID], out = i, append(out, spreadRow{GroupID: r.GroupID})
		}
		low[r.GroupID], high[r.GroupID] = min(low[r.GroupID], r.Reward), max(high[r.GroupID], r.Reward)
		out[i].Rewards, out[i].Spread = out[i].Rewards+1, high[r.GroupID]-low[r.GroupID]
	}
	return out
}

// spreadStage fetches, computes and commits.
func spreadStage(w *stage.Worker) stage.Activity {
	return stage.Of(func(ctx context.Context, e *stage.Env, in api.StageInput) (out api.Done, err error) {
		scored := in.Made.One(schema.StageReward)
		s := stage.Spec{Scope: in.Scope, Stage: stageSpread, Turn: -1, Shard: -1, Inputs: []schema.Ref{scored}}
		err = stage.Execute(ctx, w, e, s, &out, func(ctx context.Context, d *stage.Draft) error {
			rewards, err := record.Read[schema.RewardRow](ctx, w.Records, scored)
			if err != nil {
				return err
			}
			return stage.Put(ctx, d, spreadsOf(rewards))
		})
		return out, err
	})
}

// A pure stage needs its table, its declaration and its function: then every step has it, in both modes, and a replay
// makes it again.
func TestAddAPureStage(t *testing.T) {
	t.Cleanup(schema.Declare[spreadRow](spreads, 9, "how far the rewards of each group spread"))
	t.Cleanup(stages.Declare(spreadDeclared, schema.StageAdvantage))
	for _, mode := range []string{recipes.ModeInterleaved, recipes.ModeStaged} {
		objects := mem.New()
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
		deps.Activities[measureSpread] = spreadStage(deps)
		train(t, deps, mode)
		writer := commit.New(objects)
		for step := 1; step <= 2; step++ {
			rewards := rowsOf[schema.RewardRow](t, writer, mode, step, schema.StageReward)
			require.NotEmpty(t, rewards)
			require.Equal(t, spreadsOf(rewards), rowsOf[spreadRow](t, writer, mode, step, stageSpread))
		}
		again, err := pipelinetest.Run[workflows.ReplayStageResult](pipelinetest.Environment(deps),
			workflows.ReplayStageName, workflows.ReplayStageInput{Run: mode, Step: 1, From: stageSpread,
				Through: stageSpread})
		require.NoError(t, err)
		require.Len(t, again.Stages, 1)
		require.True(t, again.Stages[0].Same)
		require.NoError(t, deps.Close())
	}
}

// train trains two short steps.
func train(t *testing.T, w *stage.Worker, mode string) {
	t.Helper()
	recipe, err := os.ReadFile("../../../test/e2e/testdata/tiny.yaml")
	require.NoError(t, err)
	_, err = pipelinetest.Run[workflows.TrainRunResult](pipelinetest.Environment(w), workflows.TrainRunName,
		workflows.TrainRunInput{Run: mode, RecipeYAML: string(recipe), Set: []string{"steps=2", "warm_start.steps=40",
			"rollout.prompts=4",
			"rollout.samples_per_prompt=4", "evaluation.problems=3", "rollout.mode=" + mode}})
	require.NoError(t, err)
}
