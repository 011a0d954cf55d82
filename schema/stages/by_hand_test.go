package stages

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// What a new pure stage touches, shown by one that is there: its name, its activity and its parameters are written in
// these files, and everything else follows from the declaration. The rows of its tables come in addition, in package
// schema.
func TestFilesThatNameAPureStage(t *testing.T) {
	root := filepath.Join("..", "..")
	named := regexp.MustCompile(`\b(StageBuffer|UpdateReplayBuffer)\b`)
	var files []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, _ := filepath.Rel(root, path)
		hidden := name != "." && strings.HasPrefix(name, ".")
		if e.IsDir() && (hidden || name == filepath.Join("internal", "testing", "recordtest")) {
			return fs.SkipDir // tools, and records that tests make up
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		text, err := os.ReadFile(path)
		if named.Match(text) {
			files = append(files, filepath.ToSlash(name))
		}
		return err
	})
	require.NoError(t, err)
	slices.Sort(files)
	require.Equal(t, []string{
		"activities/learn/register.go",             // a line in the list of the topic's stages
		"activities/learn/update_replay_buffer.go", // the activity, and what a replay of it reads
		"internal/step/api/api.go",                 // its name, its input and output
		"schema/place.go",                          // the stage's name
		"schema/stages/all.go",                     // the declaration
	}, files)
}
