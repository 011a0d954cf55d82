package workflows

import (
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	sdklog "go.temporal.io/sdk/log"
	"go.temporal.io/sdk/worker"
)

// The histories in testdata were recorded from real runs. This test fails for a change of workflow code that cannot
// continue a run which was started before the change; such a change needs workflow.GetVersion. Record the histories
// again only if no released code has made them, or once they are pinned:
//
//	go test ./test/e2e -run 'TestRecord.*Histories|TestARunChangesBuilds|TestARunFollows' -update
//
// A folder of testdata holds the histories of the release that it is named after; tools/pin-histories.sh copies them
// there. It is removed when no run of that release can be open any more.
var recorded = []string{
	"evaluate-shards.json",    // EvaluateRun with shards
	"evaluate.json",           // EvaluateRun without shards
	"experiment.json",         // Experiment whose stop rule ends a trial
	"hand-over.json",          // HandOver between two builds
	"import-openai.json",      // ReprocessRun of conversations, whose calls are only recorded
	"refused-input.json",      // TrainRun refuses its input
	"refused-recipe.json",     // PrepareRun refuses the recipe
	"replay-check.json",       // ReplayStage that checks every step
	"replay-symbolic.json",    // ReplayStage of a reward that reads gradings
	"replay-trains.json",      // ReplayStage that trains, and compares the policy with the run's own
	"replay.json",             // ReplayStage of a step, with another recipe
	"sample-pipelined.json",   // SampleStep of a pipelined run
	"scheduled.json",          // ScheduledRun, which notes the start of its run
	"shard-failed.json",       // RolloutShard that fails for good
	"shard.json",              // RolloutShard to completion
	"step-alongside.json",     // TrainStep with an evaluation alongside it, which selects the next step's prompts
	"step-buffer.json",        // TrainStep with a replay buffer
	"step-failed.json",        // TrainStep that fails for good; its run parks
	"step-finish.json",        // TrainStep whose last activity updates and publishes
	"step-graded.json",        // TrainStep with the stage grade
	"step-interleaved.json",   // TrainStep whose shards are one activity each
	"step-logprobs.json",      // TrainStep with the stage logprobs
	"step-pipelined.json",     // TrainStep of a step that was sampled ahead
	"step-rounds.json",        // TrainStep that samples in rounds
	"step-shard-failed.json",  // TrainStep in which a shard's workflow fails
	"step-shards.json",        // TrainStep whose shards are workflows; in the other steps they are not
	"step-worker-killed.json", // TrainStep whose worker was killed: activities were retried
	"step.json",               // TrainStep to completion
	"train-alongside.json",    // TrainRun with an evaluation after each step
	"train-chosen.json",       // TrainRun whose tasks a model's answers decide
	"train-continued.json",    // TrainRun's second history, after a continue-as-new
	"train-continues.json",    // TrainRun's first history, up to its continue-as-new
	"train-hands-over.json",   // TrainRun's history on one build, up to its HandOver
	"train-held.json",         // TrainRun that its experiment holds
	"train-interleaved.json",  // TrainRun of such steps, with evaluations and compactions
	"train-own.json",          // TrainRun that takes interleaved steps itself
	"train-parked.json",       // TrainRun that parks and is told to retry
	"train-pipelined.json",    // TrainRun that samples ahead
	"train-resumed.json",      // TrainRun of a run whose history was lost
	"train-steered.json",      // TrainRun that is paused, changed and stopped
	"train-superseded.json",   // TrainRun's history on a build that another one superseded, up to its HandOver
	"train-upgraded.json",     // TrainRun's history on the next build
	"train.json",              // TrainRun to completion
}

func replayer() worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	Register(r)
	return r
}

var silent = sdklog.NewStructuredLogger(slog.New(slog.DiscardHandler))

func TestHistoryReplay(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	require.NoError(t, err)
	var names []string
	for _, f := range files {
		names = append(names, filepath.Base(f))
	}
	require.Equal(t, recorded, names, "every history is recorded and every recorded one is listed")
	released, err := filepath.Glob("testdata/v*/*.json")
	require.NoError(t, err)
	for _, f := range append(files, released...) {
		t.Run(strings.TrimPrefix(f, "testdata/"), func(t *testing.T) {
			require.NoError(t, replayer().ReplayWorkflowHistoryFromJSONFile(silent, f))
		})
	}
}

// The history replay detects a history that other code has made.
func TestHistoryReplayFindsChangedWorkflows(t *testing.T) {
	text, err := os.ReadFile("testdata/step.json")
	require.NoError(t, err)
	var history map[string]any
	require.NoError(t, json.Unmarshal(text, &history))
	same := asJSON(t, history)
	changed := strings.ReplaceAll(same, `"name":"Resample"`, `"name":"ComputeAdvantages"`)
	require.NotEqual(t, same, changed)
	file := filepath.Join(t.TempDir(), "history.json")
	require.NoError(t, os.WriteFile(file, []byte(changed), 0o600))
	require.ErrorContains(t, replayer().ReplayWorkflowHistoryFromJSONFile(silent, file), "ComputeAdvantages")
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	require.NoError(t, err)
	return string(text)
}
