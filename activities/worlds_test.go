package activities_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

// worlds is the folder of the examples of environments in Python.
const worlds = "../env/remote/worlds"

// ofWorld makes a small random model of an example's recipe, which takes two steps on the CPU engine.
var ofWorld = []string{
	"steps=2", "engine={kind: cpu}", "policy={layers: 1, hidden: 32, heads: 1, kv_heads: 1, head_dim: 32, ffn: 64, " +
		"max_positions: 8192}", "rollout.prompts=2", "rollout.samples_per_prompt=2", "rollout.max_turns=4",
	"rollout.max_turn_tokens=24", "rollout.shard_groups=1", "rollout.history=1", "optimizer.minibatches=1",
	"optimizer.minibatch_rows=0", "evaluation.problems=2", "checkpoint.every=0", "checkpoint.keep_last=1",
}

// Each example of an environment in Python trains two steps by its recipe. `make test-worlds` installs the packages.
func TestRealWorldsTrain(t *testing.T) {
	for _, c := range []struct {
		name, module, folder string // what the interpreter needs, and the variable that names the world's files
		expert               bool   // its warm start clones the expert
	}{
		{name: "textworld", module: "textworld", expert: true},
		{name: "alfworld", module: "alfworld", folder: "ROPEWALK_ALFWORLD"},
		{name: "scienceworld", module: "scienceworld"},
		{name: "textarena", module: "textarena"},
		{name: "babyai", module: "minigrid", expert: true},
		{name: "miniwob", module: "browsergym.miniwob"},
		{name: "webshop", module: "spacy", folder: "ROPEWALK_WEBSHOP"},
	} {
		t.Run(c.name, func(t *testing.T) {
			folder := os.Getenv(c.folder)
			if c.folder != "" && folder == "" {
				t.Skipf("%s names no folder", c.folder)
			}
			trainWorld(t, c.name, c.module, folder, c.expert)
		})
	}
}

func trainWorld(t *testing.T, name, module, folder string, expert bool) {
	what := strings.ToUpper(name)
	if name == "alfworld" { // in the same virtual environment
		what = "TEXTWORLD"
	}
	if named := os.Getenv("ROPEWALK_" + what + "_PYTHON"); named != "" {
		t.Setenv(python.Variable, named)
	}
	t.Setenv(python.Variable, pythontest.Need(t, what, module))
	text, err := os.ReadFile(filepath.Join(worlds, name+".yaml"))
	require.NoError(t, err)
	path, err := filepath.Abs(worlds)
	require.NoError(t, err)
	recipe := strings.NewReplacer("/opt/ropewalk/env/remote/worlds", path, "/data/json_2.1.1", folder,
		"/data/WebShop", folder).Replace(string(text))
	set := append([]string{"warm_start.steps=0"}, ofWorld...)
	if name != "webshop" { // which has no such setting
		set = append(set, "environment.settings.step_seconds=900") // on a busy machine, too
	}
	if expert {
		set[0] = "warm_start.steps=2"
		set = append(set, "warm_start.batch=4", "warm_start.noise=0.5", "warm_start.optimizer.lr=0.001")
	}
	b := newBench(t, mem.New())
	_, err = b.train(t, workflows.TrainRunInput{Run: "r", RecipeYAML: recipe, Set: set})
	require.NoError(t, err)
	noFaults(t, b)
	listed := 0
	for step := 1; step <= 2; step++ {
		for _, row := range stepRows[schema.TransitionRow](t, b.store, "r", step, schema.StageSandbox) {
			require.Nil(t, row.Excluded, "action %q", row.Action)
			require.NotEmpty(t, row.Observation)
			if row.Admissible != nil {
				listed++
			}
		}
	}
	require.Equal(t, name != "scienceworld" && name != "miniwob", listed > 0)
	for _, row := range evaluationRows(t, b) {
		require.NotNil(t, row.Score)
	}
}
