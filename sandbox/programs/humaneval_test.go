package programs

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/env/code"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
	"github.com/ropewalk/ropewalk/internal/testing/zygotetest"
	"github.com/ropewalk/ropewalk/sandbox/symbolic"
	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// Every canonical solution of HumanEval passes, and every empty body fails.
func TestHumanEval(t *testing.T) {
	path, err := filepath.Abs(realdata.Path(t, "humaneval", "HumanEval.jsonl.gz"))
	require.NoError(t, err)
	zygotetest.Need(t)
	e, err := zygote.Open(zygote.Options{Workers: 2})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	world, err := code.Declaration.Open(env.Options{Settings: env.Settings{"train": path, "max_mb": 1,
		"max_row_kb": 64}, MaxTurns: 1})
	require.NoError(t, err)
	var pairs []symbolic.Pair
	var want []symbolic.Verdict
	for _, task := range envtest.Take(t, world, env.Train, 1, 164) {
		var row struct {
			Solution string `json:"canonical_solution"`
		}
		require.NoError(t, json.Unmarshal([]byte(task.Spec), &row))
		pairs = append(pairs, symbolic.Pair{Answer: row.Solution, Gold: task.Answer},
			symbolic.Pair{Answer: "    pass\n", Gold: task.Answer})
		want = append(want, symbolic.Equal, symbolic.Different)
	}
	graded, err := Run(t.Context(), e, pairs, limits)
	require.NoError(t, err)
	for i, g := range graded {
		require.NoError(t, g.Broken)
		require.Equal(t, want[i], g.Verdict, "%s\n%s", pairs[i].Answer, pairs[i].Gold)
	}
}
