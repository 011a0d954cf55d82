package main

import (
	"bytes"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/pythontest"
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
				name, _, _ := strings.Cut(strings.Trim(word, "-;"), "=")
				if strings.HasPrefix(word, "--") && command.Flags().Lookup(name) == nil {
					t.Errorf("%s: %s has no flag --%s", path, command.CommandPath(), name)
				}
			}
		}
	}
	require.GreaterOrEqual(t, found, 3)
}

// Every flag of the chart's containers is one of the command that it starts.
func TestFlagsOfTheChart(t *testing.T) {
	flag := regexp.MustCompile(`(?m)^ +- --([a-z-]+)=|"--([a-z-]+)=`)
	commands := map[string]string{"workers": "worker", "sandbox": "sandbox serve", "monitor": "monitor"}
	for file, command := range commands {
		text := deployment(t)["deploy/helm/ropewalk/templates/"+file+".yaml"]
		c, _, err := program().Find(strings.Fields(command))
		require.NoError(t, err)
		found := flag.FindAllStringSubmatch(text, -1)
		require.NotEmpty(t, found, file)
		for _, m := range found {
			require.NotNil(t, c.Flags().Lookup(m[1]+m[2]), "%s: %s has no flag --%s", file, command, m[1]+m[2])
		}
	}
}

// A recipe's plan gives the chart its resources.
func TestValuesOfAPlan(t *testing.T) {
	python := pythontest.Need(t, "PYTHON")
	values := func(args ...string) (v struct {
		Queues map[string]struct{ Resources struct{ Memory string } }
		GPU    struct {
			Devices, UpdateDevices int
			Hosts                  bool
		}
	}) {
		var plan, messages bytes.Buffer
		code := Run(t.Context(), append([]string{"run", "--dry-run", "--json"}, args...), &plan, &messages)
		require.Equal(t, exitDone, code, messages.String())
		cmd := exec.Command(python, filepath.Join(top, "deploy/helm/values-of.py"))
		cmd.Stdin = &plan
		out, err := cmd.Output()
		require.NoError(t, err)
		require.NoError(t, json.Unmarshal(out, &v), string(out))
		return v
	}
	small := values("quickstart")
	require.Equal(t, "2Gi", small.Queues["gpu"].Resources.Memory)
	require.Equal(t, "2Gi", small.Queues["rollout"].Resources.Memory)
	large := values("qwen3-4b-prs-vspo", "--inventory", "h200x8")
	require.Equal(t, 4, large.GPU.Devices)
	require.Equal(t, 4, large.GPU.UpdateDevices)
	require.False(t, large.GPU.Hosts)
	require.Equal(t, "49Gi", large.Queues["gpu"].Resources.Memory, "a checkpoint of 45 GiB, and 4")
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
