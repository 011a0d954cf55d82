package sql_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/internal/commit"
	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/folder"
)

// A record in a folder is read where it lies: the answer is the same, nothing is copied, a damaged
// shard is found, and the queries see no other file.
func TestQueryOfAFolder(t *testing.T) {
	const text = "select run, step, sum(reward) s, count(*) n from rewards join trajectories using (run, step, " +
		"trajectory_id) group by all order by all"
	objects, root, dir := twoRuns(t), t.TempDir(), t.TempDir()
	recordtest.Unpack(t, objects, root)
	want, err := query(t, objects, text)
	require.NoError(t, err)
	ask := func(text string) (sql.Result, error) {
		return sql.Query(t.Context(), keeping(t, folder.New(root), dir), text)
	}
	got, err := ask(text)
	require.NoError(t, err)
	require.JSONEq(t, jsonOf(t, want), jsonOf(t, got))
	require.Empty(t, filesIn(t, dir), "a session that reads files keeps none")

	_, err = ask("select * from read_text('" + filepath.Join(filepath.Dir(root), "*") + "')")
	require.ErrorIs(t, err, sql.ErrQuery)

	for _, file := range filesIn(t, filepath.Join(root, "runs", "run=done", "table=rewards")) {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		data[len(data)/2] ^= 1
		require.NoError(t, os.WriteFile(file, data, 0o644))
		_, err = ask(text)
		require.ErrorIs(t, err, commit.ErrDamaged)
		require.ErrorContains(t, err, strings.TrimPrefix(file, root+"/"))
		return
	}
}

func filesIn(t *testing.T, root string) (out []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			out = append(out, path)
		}
		return err
	}))
	return out
}
