package workflows

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// A step runs the declared stages in order: the stages that its recipe needs and no others.
func TestAStepRunsTheDeclaredStages(t *testing.T) {
	for i := range 8 {
		needs := stages.Needs{Grade: i&1 > 0, Logprobs: i&2 > 0, ReplayBuffer: i&4 > 0}
		t.Run(fmt.Sprintf("%+v", needs), func(t *testing.T) {
			f := newFakes(t, api.Plan{Recipe: "r", Steps: 1, Shards: 2, MaxTurns: 1, Needs: needs})
			f.grades()
			f.logprobs()
			_, _, heads := f.buffers()
			f.env.ExecuteWorkflow(TrainRun, TrainRunInput{Run: "run-1", Recipe: "quickstart"})
			require.NoError(t, f.env.GetWorkflowError())
			want := stages.Named(func(s stages.Stage) bool {
				before := s.Name != schema.StagePublish // publish commits the head
				return s.Phase == stages.Step && !s.Unread && s.Runs(needs) && before
			})
			require.Equal(t, want, slices.Compact(stageNames((*heads)[0])))
		})
	}
}

// Every activity has a queue that a worker can poll, a time limit, and a retry policy.
func TestActivitiesHavePolicies(t *testing.T) {
	for _, a := range stages.Activities() {
		require.Contains(t, []string{QueueCPU, QueueRollout, QueueSandbox, QueueGPU}, a.Queue, a.Name)
		require.Positive(t, a.Limit, a.Name)
		require.NotNil(t, retries[a.Retry], a.Name)
	}
}

// The least age that gc accepts while workers are there covers every stage: each commits within its own limit, also
// within an activity that runs several.
func TestTheLongestStageIsDeclared(t *testing.T) {
	require.Equal(t, 6*time.Hour, LongestStage())
	for _, a := range stages.Activities() {
		if a.Joint || a.Name == api.ServeRanks {
			require.Greater(t, a.Limit, LongestStage(), "%s holds others, or commits nothing", a.Name)
			continue
		}
		require.LessOrEqual(t, a.Limit, LongestStage(), a.Name)
	}
	require.Equal(t, []bool{true, true, true, false}, []bool{stages.ActivityOf(api.RunEpisodes).Joint,
		stages.ActivityOf(api.MakeBatch).Joint, stages.ActivityOf(api.UpdateAndPublish).Joint,
		stages.ActivityOf(api.UpdatePolicy).Joint})
}
