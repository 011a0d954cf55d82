package activities_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/pipelinetest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// editing is a reward function that edits what it imports, once in the second step.
const editing = `import pathlib
from constants import reward
here = pathlib.Path(__file__)

def score(t):
    calls = here.with_name("calls")
    n = len(calls.read_text()) if calls.exists() else 0
    calls.write_text("x" * (n + 1))
    if n == 13:
        here.with_name("constants.py").write_text("reward = 2")
    return reward
`

// A run notes the code that it loads, and each stage the code that it calls. After an edit in the middle of the run the
// next call has the new code, and the step says so.
func TestARunNotesItsCode(t *testing.T) {
	for _, mode := range []string{"staged", "interleaved"} {
		t.Run(mode, func(t *testing.T) {
			settings, _, _, path := pythonWalk(t)
			for name, text := range map[string]string{"edited.py": editing, "constants.py": "reward = 1"} {
				require.NoError(t, os.WriteFile(filepath.Join(path, name), []byte(text), 0o600))
			}
			b := walkBench(t, mem.New())
			run := pipelinetest.Environment(b.deps)
			_, err := pipelinetest.Run[workflows.TrainRunResult](run, workflows.TrainRunName, workflows.TrainRunInput{
				Run: "r", RecipeYAML: walkOf("python", settings, mode,
					fmt.Sprintf(`{name: python, module: "edited:score", path: %q, kwargs: ""}`, path)),
				Set: []string{"evaluation.problems=1", "evaluation.samples=1"}})
			require.NoError(t, err)

			note := func(p schema.Place, name string) string {
				m, _, found, err := b.record.Lookup(t.Context(), p)
				require.NoError(t, err)
				require.True(t, found)
				return m.Note[name]
			}
			began := note(schema.AtInit("r", schema.StagePrepare), schema.NoteRewardCode)
			require.Regexp(t, `^[0-9a-f]{64}  constants.py\n[0-9a-f]{64}  edited.py\n$`, began)
			for _, measured := range []schema.Place{schema.AtInit("r", schema.StageEvaluate),
				schema.At("r", 2, schema.StageEvaluate)} {
				require.Regexp(t, `^[0-9a-f]{64}  walking.py\n$`, note(measured, schema.NoteEnvironmentCode))
			}
			rewards := map[float64]int{}
			for step, edits := range []int{1: 0, 2: 1} {
				edited := 0
				for shard := range 2 * min(step, 1) {
					at := schema.At("r", step, schema.StageFunction).WithShard(shard)
					if note(at, schema.NoteRewardCode) != began {
						edited = 1
					}
					at = schema.At("r", step, schema.StageSandbox).WithTurn(0).WithShard(shard)
					require.Regexp(t, `^[0-9a-f]{64}  walking.py\n$`, note(at, schema.NoteEnvironmentCode))
				}
				require.Equal(t, edits, edited, "step %d", step)
			}
			for _, r := range stepRows[schema.RewardRow](t, b.store, "r", 2, schema.StageReward) {
				rewards[r.Reward]++
			}
			require.Positive(t, rewards[1])
			require.Positive(t, rewards[2])

			answer, err := run.QueryWorkflow(workflows.QueryProgress)
			require.NoError(t, err)
			var p workflows.Progress
			require.NoError(t, answer.Get(&p))
			require.Empty(t, p.Lines[0].Edited)
			require.Equal(t, "constants.py", p.Lines[1].Edited)
			require.Contains(t, p.Markdown(), "Python that was edited since the run began: constants.py")
			checked(t, b.store, "r")
		})
	}
}

// growing is a reward function that edits the environment, once.
const growing = `import pathlib
world = pathlib.Path(__file__).with_name("walking.py")

def score(t):
    if "# edited" not in world.read_text():
        with world.open("a") as f:
            f.write("# edited\n")
    return 1
`

// An edit of an environment is said by the next step that acts in it.
func TestAnEditedEnvironmentIsSaid(t *testing.T) {
	for _, mode := range []string{"staged", "interleaved"} {
		t.Run(mode, func(t *testing.T) {
			settings, _, _, path := pythonWalk(t)
			require.NoError(t, os.WriteFile(filepath.Join(path, "growing.py"), []byte(growing), 0o600))
			run := pipelinetest.Environment(walkBench(t, mem.New()).deps)
			_, err := pipelinetest.Run[workflows.TrainRunResult](run, workflows.TrainRunName, workflows.TrainRunInput{
				Run: "r", RecipeYAML: walkOf("python", settings, mode,
					fmt.Sprintf(`{name: python, module: "growing:score", path: %q, kwargs: ""}`, path)),
				Set: []string{"evaluation.problems=1", "evaluation.samples=1"}})
			require.NoError(t, err)
			answer, err := run.QueryWorkflow(workflows.QueryProgress)
			require.NoError(t, err)
			var p workflows.Progress
			require.NoError(t, answer.Get(&p))
			require.Equal(t, "walking.py", p.Lines[1].Edited)
			require.Contains(t, p.Markdown(), "ran Python that was edited since the run began: walking.py")
		})
	}
}

// Code that does not load is refused before the run begins, and so is code that the recipe does not want.
func TestCodeIsLoadedBeforeTheRun(t *testing.T) {
	zeros := strings.Repeat("0", 64)
	for want, reward := range map[string]string{
		"reward.module: load walking:missing: the Python code raised AttributeError": "module: \"walking:missing\"",
		"and the recipe wants 0000":                  "module: \"walking:score\", code_sha256: \"" + zeros + "\"",
		"code_sha256: must be 64 hexadecimal digits": "module: \"walking:score\", code_sha256: abc",
	} {
		settings, _, _, path := pythonWalk(t)
		_, err := walkBench(t, mem.New()).train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: walkOf("python",
			settings, "staged", fmt.Sprintf(`{name: python, %s, path: %q, kwargs: "{}"}`, reward, path))})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, api.FailBadInput)
	}
}

// A function that raises for every trajectory parks the run as the fault of the user's code.
func TestAFunctionThatAlwaysRaises(t *testing.T) {
	settings, _, _, path := pythonWalk(t)
	raising := []byte("def score(t):\n    return t['gone']\n")
	require.NoError(t, os.WriteFile(filepath.Join(path, "raising.py"), raising, 0o600))
	run := pipelinetest.Environment(walkBench(t, mem.New()).deps)
	_, err := pipelinetest.Run[workflows.TrainRunResult](run, workflows.TrainRunName, workflows.TrainRunInput{Run: "r",
		RecipeYAML: walkOf("python", settings, "interleaved",
			fmt.Sprintf(`{name: python, module: "raising:score", path: %q, kwargs: ""}`, path))})
	require.ErrorContains(t, err, "KeyError")
	answer, err := run.QueryWorkflow(workflows.QueryProgress)
	require.NoError(t, err)
	var p workflows.Progress
	require.NoError(t, answer.Get(&p))
	require.Equal(t, api.FailCode, p.Parked.Failures[0].Kind)
}
