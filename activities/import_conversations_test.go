package activities_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/verify"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// reprocess runs ReprocessRun over a file, with the real activities in Temporal's test environment.
func (b *bench) reprocess(t *testing.T, in workflows.ReprocessInput, file string) (workflows.ReprocessResult, error) {
	t.Helper()
	in.Digest = schema.Digest([]byte(file))
	in.Source = "imports/" + in.Digest + ".json"
	require.NoError(t, b.store.PutIfAbsent(context.Background(), in.Source, []byte(file)))
	return pipelinetest.Run[workflows.ReprocessResult](pipelinetest.Environment(b.deps), workflows.ReprocessRunName, in)
}

// conversations is a file of tasks whose trials have the given rewards; each trial calls a tool once.
func conversations(tasks ...[]float64) string {
	var lines []string
	for task, rewards := range tasks {
		for trial, reward := range rewards {
			lines = append(lines,
				fmt.Sprintf(`{"task_id":%d,"trial":%d,"reward":%g,"messages":[{"role":"user","content":"task %d"},`+
					`{"role":"assistant","content":null,"tool_calls":[{"id":"a","type":"function",`+
					`"function":{"name":"look","arguments":"{}"}}]},`+
					`{"role":"tool","tool_call_id":"a","content":"Error: trial %d"},`+
					`{"role":"assistant","content":"done"}]}`, task, trial, reward, task, trial))
		}
	}
	return strings.Join(lines, "\n")
}

func TestConversationsGoThroughTheStages(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, mem.New())
	got, err := b.reprocess(t, workflows.ReprocessInput{Run: "talk", Recipe: "openai-offline", Format: "openai"},
		conversations([]float64{1, 0, 0, 1}, []float64{1, 1, 1, 1}, []float64{0, 0, 0, 0}, []float64{0.25, 0.75}))
	require.NoError(t, err)
	require.Equal(t, []any{14, 14, 6, 6}, []any{got.Trajectories, got.ToolCalls, got.Kept, got.BatchRows})
	require.Equal(t, []any{6, 0.5}, []any{got.Rewarded, got.Reward},
		"successes are rewards of 1")

	view, err := analysis.New(b.store).Visible(ctx, "talk")
	require.NoError(t, err)
	episodes, err := view.Episodes(ctx, 1)
	require.NoError(t, err)
	require.Len(t, episodes, 14)
	for i, e := range episodes {
		require.Equal(t, *e.Trajectory.SourceReward, e.Reward.Reward)
		verdict := "reference_failure"
		if e.Reward.Reward == 1 {
			verdict = "reference_success"
		}
		require.Equal(t, verdict, e.Reward.Verdict)
		require.Len(t, e.Calls, 1)
		_, _, trial, err := schema.ParseTrajectoryID(e.Trajectory.TrajectoryID)
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("Error: trial %d", trial), e.Calls[0].Response, "recorded, not run")
		require.Equal(t, int32(1), e.Trajectory.ToolErrors)
		switch {
		case i >= 4 && i < 12:
			require.Equal(t, "zero_variance", e.Selection.Reason)
			require.Nil(t, e.Advantage)
		case i < 4: // GRPO: ±0.5 over the sample standard deviation of 1, 0, 0, 1
			require.InDelta(t, (e.Reward.Reward-0.5)/0.57735, *e.Advantage, 1e-4)
		}
	}
	require.Equal(t, map[schema.Table]int{schema.Prompts: 4, schema.Turns: 28, schema.Imported: 14,
		schema.ToolCalls: 14, schema.Trajectories: 14, schema.Rewards: 14, schema.Selection: 14, schema.Batch: 6},
		rowsOfHead(t, b, "talk"), "no two shards of a table hold the same rows")
	found, err := verify.Run(ctx, b.store, "talk")
	require.NoError(t, err)
	require.Empty(t, found.Faults)
	trials, err := view.Trials(ctx, 1)
	require.NoError(t, err)
	require.Equal(t, []analysis.Trials{{Task: "0", N: 4, Successes: 2}, {Task: "1", N: 4, Successes: 4},
		{Task: "2", N: 4}, {Task: "3", N: 2}}, trials)
}

// rowsOfHead counts the rows behind the head of a run's first step by table, as a plain walk over its manifests does.
func rowsOfHead(t *testing.T, b *bench, run string) map[schema.Table]int {
	t.Helper()
	head, _, found, err := b.deps.Record.Head(t.Context(), run, "1")
	require.NoError(t, err)
	require.True(t, found)
	out := map[schema.Table]int{}
	for _, refs := range head.Stages {
		for _, ref := range refs {
			m, err := b.deps.Record.Read(t.Context(), ref)
			require.NoError(t, err)
			parts, err := b.deps.Record.Parts(t.Context(), m)
			require.NoError(t, err)
			for _, part := range append(parts, m) {
				for _, s := range part.Shards {
					out[s.Table] += s.Rows
				}
			}
		}
	}
	delete(out, schema.Documents)
	return out
}

// A file that cannot be read, or whose format differs from its recipe's, leaves nothing visible.
func TestConversationsThatAreRefused(t *testing.T) {
	b := newBench(t, mem.New())
	for name, c := range map[string]struct {
		in         workflows.ReprocessInput
		file, want string
	}{
		"a field": {workflows.ReprocessInput{Recipe: "openai-offline", Format: "openai"},
			conversations([]float64{1}) + "\n{}", "line 2: item 1: messages: is missing"},
		"a recipe": {workflows.ReprocessInput{Recipe: "quickstart", Format: "openai"},
			conversations([]float64{1}),
			"an import of format openai wants a recipe of that environment, got calc"},
		"a format": {workflows.ReprocessInput{Recipe: "openai-offline", Format: "csv"}, "",
			`format: must be openai, got "csv"`},
		"its sandbox": {workflows.ReprocessInput{Recipe: "openai-offline", Format: "openai",
			Set: []string{"sandbox.cpu_seconds=1"}}, conversations([]float64{0}),
			"sandbox: has no place in a recipe of openai"},
		"its training": {workflows.ReprocessInput{Recipe: "openai-offline", Format: "openai",
			Set: []string{"reward.name=exact_match"}}, conversations([]float64{0, 0}),
			"must be reference in a recipe of openai"},
	} {
		t.Run(name, func(t *testing.T) {
			c.in.Run = "refused-" + strings.ReplaceAll(name, " ", "-")
			_, err := b.reprocess(t, c.in, c.file+" ")
			require.ErrorContains(t, err, c.want)
			objects, err := b.store.List(context.Background(), schema.RunPrefix(c.in.Run)+"table=")
			require.NoError(t, err)
			for _, o := range objects {
				require.Contains(t, o.Key, "table=documents/", "at most the recipe is there")
			}
		})
	}
}

// Once a run's recipe is in the record, its request is deleted.
func TestAPreparedRunHasNoRequest(t *testing.T) {
	ctx := context.Background()
	b := newBench(t, mem.New())
	require.NoError(t, b.store.Put(ctx, schema.RequestKey("asked"), []byte("{}")))
	in := workflows.ReprocessInput{Run: "asked", Recipe: "openai-offline", Format: "openai"}
	_, err := b.reprocess(t, in, conversations([]float64{1, 0}))
	require.NoError(t, err)
	_, err = b.store.Get(ctx, schema.RequestKey("asked"))
	require.ErrorIs(t, err, store.ErrNotFound)

	_, err = pipelinetest.Run[workflows.TrainRunResult](pipelinetest.Environment(b.deps), workflows.TrainRunName,
		workflows.TrainRunInput{Run: "asked", Resume: true})
	require.ErrorContains(t, err, "openai holds imported trajectories, which no policy can be run on")

	_, err = b.reprocess(t, in, conversations([]float64{1, 1}))
	require.ErrorContains(t, err, "run_id: run asked holds the import of another file")
	again, err := b.reprocess(t, in, conversations([]float64{1, 0}))
	require.NoError(t, err)
	require.Equal(t, 2, again.Trajectories)
}
