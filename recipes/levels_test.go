package recipes

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// A recipe that names files of levels is recorded with their digest. Reading the record needs no files; a new recipe
// and a change of the setting do.
func TestFilesOfLevelsArePinned(t *testing.T) {
	file := filepath.Join(t.TempDir(), "levels.txt")
	require.NoError(t, os.WriteFile(file, []byte("; 0\n#####\n#@$.#\n#####\n"), 0o600))
	name := "environment.settings.levels=" + file
	r := resolved(t, "sokoban", name)
	pinned := r.Recipe.Environment.Settings["levels_sha256"]
	require.Len(t, pinned, 64)
	require.Contains(t, string(r.JSON), `"levels_sha256": "`+pinned.(string)+`"`)
	again, err := Resolve("again", string(r.JSON), nil, nil, nil)
	require.NoError(t, err)
	require.Equal(t, r, again)
	long := resolved(t, "sokoban", name, "rollout.max_turns=120").Recipe // gym-sokoban's limit
	require.Equal(t, 120, long.Rollout.MaxTurns)

	require.NoError(t, os.WriteFile(file, []byte("; 0\n######\n#@$ .#\n######\n"), 0o600))
	_, err = Resolve("again", string(r.JSON), nil, nil, nil)
	require.ErrorContains(t, err, "environment.settings: levels: the files at "+file+" have the digest ")
	require.ErrorContains(t, err, "and levels_sha256 is "+pinned.(string))
	require.NoError(t, os.WriteFile(file, []byte("; 0\n#####\n#@$ #\n#####\n"), 0o600))
	_, err = Resolve("sokoban", "", []string{name}, nil, nil)
	require.ErrorContains(t, err, "levels: "+file+":2: level 0: the room has 1 boxes and 0 targets")

	require.NoError(t, os.Remove(file))
	kept, err := ResolveCommitted(&r.Recipe, []string{"optimizer.lr=0.1"})
	require.NoError(t, err)
	require.Equal(t, r.Recipe.Environment, kept.Recipe.Environment)
	_, err = ResolveCommitted(&r.Recipe, []string{name + "2"})
	require.ErrorContains(t, err, "levels.txt2: no such file or directory")
	_, err = Resolve("sokoban", "", []string{"environment.settings.levels_sha256=ab"}, nil, nil)
	require.ErrorContains(t, err, "levels_sha256: there are no levels that it could be the digest of")
}
