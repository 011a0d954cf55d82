package pipelinetest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/activities/record"
	"github.com/ropewalk/ropewalk/activities/stage"
	"github.com/ropewalk/ropewalk/activities/verdict"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/grading"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/recipes"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
)

// The verdict stage of CONTRIBUTING.md. In the tree it is an entry of verdict.All, besides those of a pure stage.

const (
	stageSevens              = "sevens"
	findSevens               = "FindSevens"
	sevens      schema.Table = "sevens"
)

// sevenRow is the verdict on one answer.
type sevenRow struct {
	GroupID      string `parquet:"group_id,dict" doc:"the trajectory's group"`
	TrajectoryID string `parquet:"trajectory_id" doc:"the trajectory"`
	HasSeven     bool   `parquet:"has_seven" doc:"whether its text has a 7"`
}

func (sevenRow) Validate() error { return nil }

func (r sevenRow) Position() schema.Position { return schema.InTrajectory(r.GroupID, r.TrajectoryID) }

// sevenSource excludes answers with a 7 from rewards.
type sevenSource struct{ *stage.Worker }

func (sevenSource) Stage() string              { return stageSevens }
func (sevenSource) Asked(*recipes.Recipe) bool { return true }
func (sevenSource) NeedsProblems() bool        { return false }
func (sevenSource) Missing() string            { return "sevens: step %d of run %s has none" }
func hasSeven(t schema.TrajectoryRow) bool     { return strings.Contains(t.Text, "7") }

func (s sevenSource) Ask(ctx context.Context, d *stage.Draft, q *verdict.Questions, out *api.Verdicts) error {
	var rows []sevenRow
	for _, t := range q.Answers {
		rows = append(rows, sevenRow{t.GroupID, t.TrajectoryID, hasSeven(t)})
	}
	out.Asked = len(rows)
	return stage.Put(ctx, d, rows)
}

func (s sevenSource) Settle(ctx context.Context, _ *grading.Grader, made schema.Ref,
	trajectories []schema.TrajectoryRow) error {
	rows, err := record.Read[sevenRow](ctx, s.Records, made)
	if err != nil {
		return err
	}
	for i, r := range rows {
		if r.HasSeven {
			trajectories[i].Excluded = new("a seven")
		}
	}
	return nil
}

// A verdict stage needs its table, its declaration, which reward reads, and its source.
func TestAddAVerdictStage(t *testing.T) {
	t.Cleanup(schema.Declare[sevenRow](sevens, 9, "which answers have a 7"))
	t.Cleanup(stages.Declare(stages.Stage{
		Name: stageSevens, Phase: stages.Step, Parts: stages.Shards,
		Doc:        "finds answers with a 7",
		Activities: []stages.Activity{{Name: findSevens, Queue: stages.CPU, Limit: time.Minute}},
		Reads:      []stages.Read{{Stage: schema.StageAssemble, Tables: []schema.Table{schema.Trajectories}}},
		Writes:     []schema.Table{sevens},
	}, schema.StageGrade))
	reward, _ := stages.Of(schema.StageReward)
	reward.Reads = append(reward.Reads[:len(reward.Reads):len(reward.Reads)], stages.Read{Stage: stageSevens,
		Tables: []schema.Table{sevens}})
	t.Cleanup(stages.Declare(reward, stages.Commit))
	before := verdict.All
	source := func(w *stage.Worker) verdict.Source { return sevenSource{w} }
	verdict.All = append(before[:len(before):len(before)], source)
	t.Cleanup(func() { verdict.All = before })
	for _, mode := range []string{recipes.ModeInterleaved, recipes.ModeStaged} {
		objects := mem.New()
		deps := pipelinetest.Deps(t, objects, pipelinetest.Wrap{})
		deps.Activities[findSevens] = stage.Of(func(ctx context.Context, e *stage.Env,
			in api.VerdictInput) (api.Verdicts, error) {
			return verdict.Answer(ctx, deps, e, sevenSource{deps}, in)
		})
		train(t, deps, mode)
		requireExcluded(t, objects, mode)
		require.NoError(t, deps.Close())
	}
}

// requireExcluded requires that just the trajectories with a 7 have no reward.
func requireExcluded(t *testing.T, objects store.Store, run string) {
	t.Helper()
	writer, excluded := commit.New(objects), 0
	for step := 1; step <= 2; step++ {
		scored := map[string]bool{}
		for _, r := range rowsOf[schema.RewardRow](t, writer, run, step, schema.StageReward) {
			scored[r.TrajectoryID] = true
		}
		trajectories := rowsOf[schema.TrajectoryRow](t, writer, run, step, schema.StageAssemble)
		require.Len(t, rowsOf[sevenRow](t, writer, run, step, stageSevens), len(trajectories))
		for _, r := range trajectories {
			require.Equal(t, !hasSeven(r), scored[r.TrajectoryID], r.Text)
			if hasSeven(r) {
				excluded++
			}
		}
	}
	require.Positive(t, excluded)
}
