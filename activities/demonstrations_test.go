package activities_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// cloning puts a demonstrations section into the warm start.
func cloning(recipe, section string) string {
	return strings.Replace(recipe, "warm_start: {", "warm_start: {demonstrations: "+section+", ", 1)
}

// A file's conversations and a run's successful trajectories are cloned; the key of the warm start holds their digest.
func TestGivenDemonstrations(t *testing.T) {
	w, recipe := dataBench(t)
	plain := recipe("{deduplicate: true}")
	folder := t.TempDir()
	text := `{"messages": [{"role": "user", "content": "What is one?"}, ` +
		`{"role": "assistant", "content": "It is \\boxed{1}"}]}`
	ofFile := func(text string) string {
		file := filepath.Join(folder, fmt.Sprintf("%x.jsonl", sha256.Sum256([]byte(text))))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
		return cloning(plain, fmt.Sprintf("{file: %s, sha256: '%x'}", file, sha256.Sum256([]byte(text))))
	}
	checkpoints := map[string]string{}
	warm := func(run, recipe string) {
		_, err := w.train(t, workflows.TrainRunInput{Run: run, RecipeYAML: recipe})
		require.NoError(t, err)
		m, _, found, err := w.record.Lookup(t.Context(), schema.AtInit(run, schema.StageWarmStart))
		require.NoError(t, err)
		require.True(t, found)
		checkpoints[run] = m.Checkpoint.Digest
	}
	warm("r", plain)
	warm("file", ofFile(text))
	warm("again", ofFile(text))
	warm("other", ofFile(strings.ReplaceAll(text, "one", "two")))
	warm("run", cloning(plain, "{run: r}"))
	require.Equal(t, checkpoints["file"], checkpoints["again"])
	delete(checkpoints, "again")
	seen := map[string]string{}
	for run, digest := range checkpoints {
		require.Empty(t, seen[digest], run)
		seen[digest] = run
	}
	other := filepath.Join(folder, "other.jsonl")
	require.NoError(t, os.WriteFile(other, nil, 0o600))
	for at, c := range []struct{ recipe, want string }{
		{ofFile(text + "\n" + `{"messages": [{"role": "user", "content": "x"}]}`),
			".jsonl: line 2: item 1: messages: holds no message of the assistant"},
		{ofFile(strings.ReplaceAll(text, "It is", strings.Repeat("very ", 80))), "line 1: item 0: response 0: has "},
		{cloning(plain, "{file: /nowhere.jsonl, sha256: '"+strings.Repeat("0", 64)+"'}"), "no such file"},
		{cloning(plain, "{file: "+other+", sha256: '"+strings.Repeat("0", 64)+"'}"), "has the digest "},
		{cloning(plain, "{run: nothing}"), "run nothing has committed no recipe"},
		{cloning(plain, "{run: bad-5}"), "bad-5 is this run"},
		{cloning(plain, "{}"), "must name either file or run"},
		{cloning(plain, "{file: a.jsonl}"), "must give sha256"},
	} {
		_, err := w.train(t, workflows.TrainRunInput{Run: fmt.Sprintf("bad-%d", at), RecipeYAML: c.recipe})
		require.ErrorContains(t, err, c.want)
	}
}
