package workflows

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/schema/stages"
)

// unrecorded are the workflows, activities and versioned changes that no history in testdata contains, and why.
var unrecorded = map[string]string{
	"ForkRun":         "it does nothing but continue as TrainRun", // which a history of a resumed run contains
	"ServeRanks":      "several hosts share an engine",            // the workflow and its activity
	"FindHome":        "several hosts share an engine",
	"JudgeAnswers":    "a server judges answers",
	"CallFunction":    "the user's Python scores trajectories",
	"EvaluateInitial": "the warm start clones the form of calls alone",
}

// seen is what a history contains.
type seen struct {
	Workflow   string
	Activities []string
	Changes    []string // markers of workflow.GetVersion
	Children   []int64  // events that start children
	Events     int
}

func seenIn(t *testing.T, file string) seen {
	t.Helper()
	history := historyIn(t, file)
	out := seen{Events: len(history.Events), Workflow: history.Events[0].GetWorkflowExecutionStartedEventAttributes().
		GetWorkflowType().GetName()}
	for _, e := range history.Events {
		switch e.EventType {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			out.Activities = append(out.Activities, e.GetActivityTaskScheduledEventAttributes().ActivityType.Name)
		case enumspb.EVENT_TYPE_START_CHILD_WORKFLOW_EXECUTION_INITIATED:
			out.Children = append(out.Children, e.EventId)
		case enumspb.EVENT_TYPE_MARKER_RECORDED:
			if m := e.GetMarkerRecordedEventAttributes(); m.MarkerName == "Version" {
				var id string
				require.NoError(t, converter.GetDefaultDataConverter().FromPayloads(m.Details["change-id"], &id))
				out.Changes = append(out.Changes, id)
			}
		}
	}
	return out
}

func historyIn(t *testing.T, file string) *historypb.History {
	t.Helper()
	f, err := os.Open(filepath.Join("testdata", file))
	require.NoError(t, err)
	defer f.Close()
	history, err := client.HistoryFromJSON(f, client.HistoryJSONOptions{})
	require.NoError(t, err, file)
	return history
}

// Every workflow, every activity, and both branches of every versioned change occur in a recorded history. Otherwise a
// change that open runs do not survive would pass the replay.
func TestHistoriesCoverTheWorkflows(t *testing.T) {
	found := map[string]bool{}
	changes := versioned(t)
	old := map[string]bool{} // changes that a history of the same workflow comes from before
	var all []seen
	for _, file := range recorded {
		s := seenIn(t, file)
		all, found[s.Workflow] = append(all, s), true
		for _, name := range slices.Concat(s.Activities, s.Changes) {
			found[name] = true
		}
	}
	for _, s := range all {
		for _, change := range s.Changes {
			old[change] = old[change] || slices.ContainsFunc(all, func(other seen) bool {
				return other.Workflow == s.Workflow && !slices.Contains(other.Changes, change)
			})
		}
	}
	want := slices.Concat(slices.Collect(maps.Keys(definitions)), changes)
	for _, a := range stages.Activities() {
		want = append(want, a.Name)
	}
	for _, name := range want {
		require.Equal(t, unrecorded[name] == "", found[name],
			"%s: record a history that contains it, or say in unrecorded why there is none", name)
	}
	for _, change := range changes {
		require.Equal(t, unrecorded[change] == "", old[change], "%s: a history from before the change", change)
	}
	for name := range unrecorded {
		require.Contains(t, want, name, "there is no such workflow, activity or change")
	}
}

// A step of an interleaved run has at most 60 events and 15 for each shard: its own and those of the run up to the next
// step. The number of turns has no influence, because a shard is one activity.
func TestInterleavedStepsHaveFewEvents(t *testing.T) {
	const steps, shards = 3, 8
	run, step := seenIn(t, "train-interleaved.json"), seenIn(t, "step-interleaved.json")
	require.Len(t, run.Children, steps)
	around := int(run.Children[2] - run.Children[1])
	t.Logf("%d events of step 2, %d of the run from step 2 to step 3", step.Events, around)
	require.LessOrEqual(t, step.Events+around, 60+15*shards)
	of := map[string]int{}
	for _, name := range step.Activities {
		of[name]++
	}
	require.Equal(t, shards, of[api.RunEpisodes])
	require.Zero(t, of[api.GenerateRollouts]+of[api.ExecuteToolCalls])
}

// A run that takes its steps itself has no more events: those of a whole run with its start and two evaluations among
// them. It names the step of each activity.
func TestARunsOwnStepsHaveFewEvents(t *testing.T) {
	const steps, shards = 4, 2
	run := seenIn(t, "train-own.json")
	require.Empty(t, run.Children)
	t.Logf("%d events", run.Events)
	require.LessOrEqual(t, run.Events, steps*(60+15*shards))
	of := map[string]int{}
	for _, e := range historyIn(t, "train-own.json").Events {
		var words string
		if text := e.GetUserMetadata().GetSummary(); text != nil &&
			e.GetActivityTaskScheduledEventAttributes().GetActivityType().GetName() == api.RunEpisodes {
			require.NoError(t, converter.GetDefaultDataConverter().FromPayload(text, &words))
			of[words]++
		}
	}
	want := map[string]int{}
	for step := 1; step <= steps; step++ {
		for shard := range shards {
			want[fmt.Sprintf("step %d: shard %d", step, shard)] = 1
		}
	}
	require.Equal(t, want, of)
}

// versioned returns the changes that the sources ask for by workflow.GetVersion.
func versioned(t *testing.T) (changes []string) {
	t.Helper()
	files, err := filepath.Glob("*.go")
	require.NoError(t, err)
	var text []byte
	for _, f := range files {
		if ok, _ := filepath.Match("*_test.go", f); ok {
			continue
		}
		source, err := os.ReadFile(f)
		require.NoError(t, err)
		text = append(text, source...)
	}
	for _, call := range regexp.MustCompile(`workflow\.GetVersion\(ctx, (\w+),`).FindAllSubmatch(text, -1) {
		value := regexp.MustCompile(`(?m)^const ` + string(call[1]) + ` = ("[^"]+")$`).FindSubmatch(text)
		require.NotNil(t, value, "the change %s is a constant", call[1])
		var id string
		require.NoError(t, json.Unmarshal(value[1], &id))
		changes = append(changes, id)
	}
	return changes
}
