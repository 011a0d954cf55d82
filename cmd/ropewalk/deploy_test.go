package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deployment returns the files of deploy/ by their paths, without the monitoring's.
func deployment(t *testing.T) map[string]string {
	t.Helper()
	files := map[string]string{}
	root := filepath.Join(top, "deploy")
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && entry.Name() == "monitoring" {
			return errorOr(err, fs.SkipDir)
		}
		if entry.IsDir() || strings.HasSuffix(path, ".go") || strings.HasSuffix(path, ".sum") {
			return nil
		}
		data, err := os.ReadFile(path)
		files[strings.TrimPrefix(path, top+"/")] = string(data)
		return err
	}))
	require.Greater(t, len(files), 4)
	return files
}

func errorOr(err, other error) error {
	if err != nil {
		return err
	}
	return other
}

// started matches a program's start in a unit: /usr/local/bin/ropewalk worker --queues %I
var started = regexp.MustCompile(`/usr/local/bin/ropewalk ([a-z].*)`)

// Every command line of the units, and every flag of the other files, is one of the program.
func TestDeployedCommandLines(t *testing.T) {
	found := 0
	for path, text := range deployment(t) {
		for _, m := range started.FindAllStringSubmatch(text, -1) {
			found++
			command, args, err := program().Find(strings.Fields(m[1]))
			require.NoError(t, err, "%s: %s", path, m[1])
			for _, word := range args {
				name, _, _ := strings.Cut(strings.TrimPrefix(word, "--"), "=")
				if strings.HasPrefix(word, "--") && command.Flags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag --%s", path, command.CommandPath(), name)
				}
			}
		}
	}
	require.GreaterOrEqual(t, found, 3)
}

// Every variable that deploy/ sets is one that the program, its scripts or its tests read.
func TestDeployedVariables(t *testing.T) {
	code := sources(t, "*.go", "*.sh", "*.py", "Makefile")
	variable := regexp.MustCompile(`\bROPEWALK_[A-Z0-9_]+\b`)
	found := map[string]bool{}
	for path, text := range deployment(t) {
		for _, name := range variable.FindAllString(text, -1) {
			found[name] = true
			if !strings.Contains(code, `"`+name+`"`) {
				t.Errorf("%s: nothing reads the variable %s", path, name)
			}
		}
	}
	require.Contains(t, found, "ROPEWALK_SANDBOX_TOKEN")
}
