package activities_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/store/mem"
	"github.com/ropewalk/ropewalk/workflows"
)

var documentedFiles = regexp.MustCompile("(?ms)^<!-- (corridor\\.[a-z]+) -->\n```[a-z]+\n(.*?)^```")

// The environment of Gymnasium's form in docs/bring-your-own.md trains by the recipe there, as printed; only the folder
// is another one. Its expert demonstrates, and the policy learns from it.
func TestTheDocumentedEnvironmentTrains(t *testing.T) {
	t.Setenv(python.Variable, pythontest.Need(t, "PYTHON"))
	page, err := os.ReadFile("../docs/bring-your-own.md")
	require.NoError(t, err)
	path, files := t.TempDir(), map[string]string{}
	for _, m := range documentedFiles.FindAllStringSubmatch(string(page), -1) {
		files[m[1]] = m[2]
	}
	require.NoError(t, os.WriteFile(filepath.Join(path, "corridor.py"), []byte(files["corridor.py"]), 0o600))
	require.Equal(t, 1, strings.Count(files["corridor.yaml"], "/opt/corridor"))
	b := newBench(t, mem.New())
	out, err := b.train(t, workflows.TrainRunInput{Run: "r",
		RecipeYAML: strings.Replace(files["corridor.yaml"], "/opt/corridor", path, 1)})
	require.NoError(t, err)
	noFaults(t, b)
	require.Greater(t, out.Final.Success, 0.5)
	types := map[string]bool{}
	for _, row := range evaluationRows(t, b) {
		types[*row.TaskType] = true
		require.Equal(t, row.Success, *row.Score == 1)
	}
	require.Equal(t, map[string]bool{"near": true, "far": true}, types)
	for _, row := range stepRows[schema.TransitionRow](t, b.store, "r", 1, schema.StageSandbox) {
		require.NotEmpty(t, *row.Admissible)
	}
}
