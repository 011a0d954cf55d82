package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// maxPayload is the largest payload, in bytes, that may pass through Temporal: references and
// small statistics, never rows.
const maxPayload = 32 << 10

func TestRunPrintsOneJSONObject(t *testing.T) {
	h, _ := needs(t, sharedStack)
	r := shared.said
	require.Equal(t, 1, strings.Count(r.out, "\n"), "standard output holds one line")
	require.Contains(t, r.err, "  step  reward success", "progress goes to standard error")

	var fields map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.out), &fields))
	number := func(path string) float64 {
		t.Helper()
		var at any = fields
		for name := range strings.SplitSeq(path, "/") {
			in, ok := at.(map[string]any)
			require.True(t, ok && in[name] != nil, "%s is missing in %s", path, r.out)
			at = in[name]
		}
		n, ok := at.(float64)
		require.True(t, ok, "%s is %T, want a number", path, at)
		return n
	}
	require.Equal(t, "base", fields["run_id"])
	require.Equal(t, "tiny", fields["recipe"])
	require.Equal(t, "done", fields["status"])
	require.Equal(t, 1.0, number("seed"))
	for _, evaluation := range []string{"warm_start", "final"} {
		require.Equal(t, 12.0, number(evaluation+"/n"))
		for _, f := range []string{"success", "ci_low", "ci_high", "greedy", "tool_error_rate_positives"} {
			require.GreaterOrEqual(t, number(evaluation+"/"+f), 0.0)
		}
		for _, level := range []string{"2", "3", "4"} {
			require.Equal(t, 4.0, number(evaluation+"/by_level/"+level+"/n"))
			require.LessOrEqual(t, number(evaluation+"/by_level/"+level+"/ci_low"),
				number(evaluation+"/by_level/"+level+"/success"))
			require.LessOrEqual(t, number(evaluation+"/by_level/"+level+"/success"),
				number(evaluation+"/by_level/"+level+"/ci_high"))
		}
	}
	require.Equal(t, float64(steps*8*8), number("trajectories"))
	for _, positive := range []string{
		"tool_calls", "tokens", "wall_seconds", "rl_seconds", "eval_seconds", "peak_rss_mb", "machine/cores",
		"machine/threads",
		"stage_seconds/prompts", "stage_seconds/rollout", "stage_seconds/sandbox", "stage_seconds/assemble",
		"stage_seconds/reward",
		"stage_seconds/resample", "stage_seconds/advantage", "stage_seconds/update", "stage_seconds/publish",
	} {
		require.Positive(t, number(positive), positive)
	}
	require.GreaterOrEqual(t, number("warm_start_seconds"), 0.0)
	require.Less(t, number("rl_seconds"), number("wall_seconds"))
	require.Greater(t, number("orchestration_share"), 0.0)
	require.Less(t, number("orchestration_share"), 1.0)
	largest, err := largestPayload(t.Context(), h.dial(t), fields["run_id"].(string))
	require.NoError(t, err)
	require.Positive(t, largest)
	require.LessOrEqual(t, largest, maxPayload)
	require.Len(t, fields["checkpoint_digest"], 64)
	machine := fields["machine"].(map[string]any)
	require.NotEmpty(t, machine["cpu"])
	require.NotEmpty(t, machine["blas"])
}

// A second run of one recipe and seed reuses the warm start and ends as the first one did.
func TestSecondRun(t *testing.T) {
	h, want := needs(t, sharedStack)
	h.undisturbed(t, want, h.train(t, "second"))
	t.Run("reuses the warm start", func(t *testing.T) {
		first := h.record().manifest(t, schema.AtInit("base", schema.StageWarmStart).ManifestKey())
		second := h.record().manifest(t, schema.AtInit("second", schema.StageWarmStart).ManifestKey())
		require.Equal(t, first.Inputs[1:], second.Inputs[1:])
		require.Equal(t, first.Note, second.Note)
		require.Equal(t, first.Checkpoint, second.Checkpoint)
		require.True(t, strings.HasPrefix(second.Checkpoint.Prefix, "warmstarts/"), second.Checkpoint.Prefix)
	})
	t.Run("is listed before the first", func(t *testing.T) {
		out := h.run(t, "runs").ok(t).out
		require.Less(t, strings.Index(out, "\nsecond "), strings.Index(out, "\nbase "), out)
		require.Contains(t, out, "\nsecond ")
	})
	t.Run("is shown", func(t *testing.T) {
		require.Contains(t, h.run(t, "show", "second", "--step", "1").ok(t).out, "reward")
	})
	t.Run("is followed to its end", func(t *testing.T) {
		followed := h.run(t, "follow", "second").ok(t).err
		require.Contains(t, followed, fmt.Sprintf("\n%6d  ", steps))
		require.Contains(t, followed, "\nsuccess  ", "with its result")
	})
	t.Run("equals the first", func(t *testing.T) {
		text := h.run(t, "diff", "base", "second").ok(t)
		require.Contains(t, text.out, "recipe       equal\n")
		require.Contains(t, text.out, fmt.Sprintf("A and B are equal in all that both recorded: %d steps\n", steps))
		file := filepath.Join(h.cwd, "both.html")
		require.Contains(t, h.run(t, "report", "base", "second", "-o", file).ok(t).err, "wrote "+file)
		page, err := os.ReadFile(file)
		require.NoError(t, err)
		require.Contains(t, string(page), "A and B are equal in all that both recorded")
		require.NotContains(t, string(page), "NaN")
	})
}

func TestEveryTableHasRows(t *testing.T) {
	h, _ := needs(t, sharedStack)
	var counts []string
	for _, table := range schema.Tables() {
		switch table {
		// The recipe needs none. See TestSymbolicImport, TestForwardPassesAndABuffer, TestInteractiveEnvironment,
		// TestConversationsComeInAndGoOut and TestDataIsPrepared, and of package activities TestAnswersAreJudged,
		// TestTasksAreJudgedByTheirDifficulty, TestAFunctionScores, TestAgentsDebateEachAction, TestTreesInBothModes
		// and TestAPipelinedRunThroughServers.
		case schema.Gradings, schema.TokenOutputs, schema.Replay, schema.Baselines, schema.Transitions,
			schema.EvaluationTransitions, schema.Imported, schema.Tasks, schema.Judgements,
			schema.EvaluationJudgements, schema.TaskAnswers, schema.FunctionScores, schema.EvaluationDebates,
			schema.Branches, schema.Behaviour:
			continue
		}
		counts = append(counts, fmt.Sprintf("select '%s', count(*) from %s", table, table))
	}
	for _, row := range h.ask(t, "base", strings.Join(counts, " union all ")).Rows {
		require.Positive(t, row[1], row[0])
	}
}

func TestDryRunStartsNothing(t *testing.T) {
	h, _ := needs(t, noServers)
	r := h.run(t, recipe("dry", "--dry-run")...).ok(t)
	require.Equal(t, 1, strings.Count(r.out, "\n"))
	var got map[string]any
	require.NoError(t, json.Unmarshal([]byte(r.out), &got))
	require.NoDirExists(t, h.dir)
}
