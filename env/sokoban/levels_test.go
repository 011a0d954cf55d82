package sokoban

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/testing/envtest"
	"github.com/ropewalk/ropewalk/internal/testing/realdata"
)

func TestBadLevelsAreRefused(t *testing.T) {
	for name, c := range map[string]struct{ text, fault string }{
		"no player":    {"; 0\n#####\n# $.#\n#####\n", "f:2: level 0: the room has no player"},
		"two players":  {"; 0\n#####\n#@$.#\n#@  #\n#####\n", "f:2: level 0: the room has two players"},
		"boxes":        {"; 0\n#####\n#@$ #\n#####\n", "f:2: level 0: the room has 1 boxes and 0 targets"},
		"open edge":    {"; 0\n#####\n#@$. \n#####\n", "f:2: level 0: the player can leave the room: its edge is open"},
		"ragged":       {"; 0\n#####\n#@$.#\n####\n", "f:4: level 0: row 2 has 4 cells, the first has 5"},
		"unknown cell": {"\n; 0\r\n#####\r\n#@$.#\r\n#x  #\r\n#####\r\n", `f:5: level 0: row 2 has 'x' in cell 1`},
		"empty":        {"\n\n", "f holds no levels (2 lines)"},
		"second level": {"; 0\n#####\n#@$.#\n#####\n\n; 17\n####\n#@ #\n####\n", "f:7: level 17: the room has 0 boxes"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := ReadLevels(env.File{Path: "f", Text: []byte(c.text)})
			require.ErrorContains(t, err, c.fault)
		})
	}
}

// corridors writes a file of n levels: corridors of different lengths, each solved by pushing its box to the right.
func corridors(t *testing.T, path string, from, n int) {
	t.Helper()
	var b strings.Builder
	for i := range n {
		wall := strings.Repeat("#", from+i+4)
		fmt.Fprintf(&b, "; %d\n%s\n#@$%s.#\n%s\n\n", i, wall, strings.Repeat(" ", from+i-1), wall)
	}
	require.NoError(t, os.WriteFile(path, []byte(b.String()), 0o600))
}

// settings returns the declared settings with the given files of levels.
func settings(levels string, more ...string) env.Settings {
	s := env.Settings{"size": 6, "boxes": 1, "min_moves": 2, "max_moves": 12, "pays": "gym", "levels": levels}
	if len(more) > 0 {
		s["levels_sha256"] = more[0]
	}
	return s
}

// A recipe is pinned to the names and bytes of its files. Files that have changed since are refused when a task is
// drawn; opening the environment reads none.
func TestLevelsOfARecipe(t *testing.T) {
	folder := t.TempDir()
	corridors(t, filepath.Join(folder, "b.txt"), 1, 4)
	corridors(t, filepath.Join(folder, "a.txt"), 5, 6)
	require.NoError(t, os.WriteFile(filepath.Join(folder, "README"), []byte("no level"), 0o600))
	s := settings(folder)
	require.NoError(t, pin(s))
	digest := s["levels_sha256"].(string)
	require.Len(t, digest, 64)
	require.NoError(t, pin(settings(folder, digest)), "a recipe may say which files it wants")

	e, err := Declaration.Open(env.Options{Settings: s, MaxTurns: GymTurns})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, split := range []env.Split{env.Train, env.HeldOut} {
		for i := range 10 {
			task, err := e.Task(t.Context(), env.Draw{Split: split, Seed: 1, Step: 1, Index: i, PerStep: 10})
			if err != nil {
				require.ErrorContains(t, err, "none of the 10 levels is in the split held-out")
				break
			}
			seen[task.ID] = true
		}
	}
	require.Len(t, seen, 10, "each level of both files is a task")

	moved := t.TempDir()
	require.NoError(t, os.CopyFS(moved, os.DirFS(folder)))
	require.NoError(t, pin(settings(moved, digest)), "the digest does not depend on the folder's path")
	corridors(t, filepath.Join(moved, "a.txt"), 6, 6)
	require.ErrorContains(t, pin(settings(moved, digest)), "and levels_sha256 is "+digest)
	e, err = Declaration.Open(env.Options{Settings: settings(moved, digest), MaxTurns: GymTurns})
	require.NoError(t, err)
	_, err = e.Task(t.Context(), env.Draw{Split: env.Train, Seed: 1, Step: 1, PerStep: 1})
	require.ErrorContains(t, err, "draw a sokoban task: levels: the files at "+moved+" have the digest ")
}

func TestBadFilesOfLevelsAreRefused(t *testing.T) {
	folder := t.TempDir()
	bad := filepath.Join(folder, "bad.txt")
	require.NoError(t, os.WriteFile(bad, []byte("; 3\n#####\n#@$.#\n###\n"), 0o600))
	for path, fault := range map[string]string{
		"levels.txt": "levels: must be an absolute path, because workers read it too, " +
			"got levels.txt",
		filepath.Join(folder, "none.txt"): "levels: stat " + folder + "/none.txt: no such file or directory",
		t.TempDir():                       "holds no file *.txt",
		folder:                            "levels: " + bad + ":4: level 3: row 2 has 3 cells, the first has 5",
		bad:                               "levels: " + bad + ":4: level 3: row 2 has 3 cells, the first has 5",
		"":                                "levels_sha256: there are no levels that it could be the digest of",
		filepath.Join(string(os.PathSeparator), "dev", "null"): "levels: /dev/null is neither a file nor a folder",
	} {
		require.ErrorContains(t, pin(settings(path, strings.Repeat("0", 64))), fault, path)
	}
}

// boxoban lists the files of real levels.
var boxoban = []string{"unfiltered_train_000.txt", "unfiltered_valid_000.txt", "medium_train_000.txt",
	"medium_valid_000.txt"}

func TestRealLevels(t *testing.T) {
	folder := realdata.Path(t, "boxoban")
	folder, err := filepath.Abs(folder)
	require.NoError(t, err)
	for _, name := range boxoban {
		levels, _, err := read(filepath.Join(folder, name))
		require.NoError(t, err)
		require.Len(t, levels, 1000)
	}
	s := settings(folder)
	require.NoError(t, pin(s))
	e, err := Declaration.Open(env.Options{Settings: s, MaxTurns: GymTurns})
	require.NoError(t, err)
	seen := map[string]bool{}
	for _, task := range slices.Concat(envtest.Take(t, e, env.Train, 1, 3000),
		envtest.Take(t, e, env.HeldOut, 1, 400)) {
		require.False(t, seen[task.ID], "a level came twice")
		seen[task.ID] = true
	}
	envtest.Run(t, e, envtest.Case{Tasks: 12, Turns: 40, Nonsense: []string{"dance"}, Solved: 0.75})
}

// The expert solves at least nine of ten real levels within gym-sokoban's limit of turns and its bound on positions.
func TestExpertOnRealLevels(t *testing.T) {
	folder := realdata.Path(t, "boxoban")
	e := newSokoban(t, Settings{MaxTurns: GymTurns, Size: 10, Boxes: 4, MinMoves: 1, MaxMoves: GymTurns})
	solved, tried := 0, 0
	for _, name := range boxoban {
		levels, _, err := read(filepath.Join(mustAbs(t, folder), name))
		require.NoError(t, err)
		for _, level := range levels[:25] {
			tried++
			state := begin(t, e, level.Rows...)
			actions, err := e.Solve(t.Context(), state)
			if err != nil {
				require.ErrorIs(t, err, env.ErrUnsolved)
				continue
			}
			require.LessOrEqual(t, len(actions), GymTurns)
			solved++
		}
	}
	t.Logf("solved %d of %d", solved, tried)
	require.GreaterOrEqual(t, solved, tried*9/10)
}

func mustAbs(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	require.NoError(t, err)
	return path
}
