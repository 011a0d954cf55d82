package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/recordtest"
	"github.com/ropewalk/ropewalk/store/mem"
)

// recordOf makes the local record hold runs a and b, and returns a folder for results.
func recordOf(t *testing.T) string {
	t.Helper()
	objects := mem.New()
	for run, seed := range map[string]uint64{"a": 1, "b": 2} {
		recordtest.Train(t, objects,
			recordtest.Options{Run: run, Steps: 2, Seed: seed, Created: "2026-01-02T03:04:05Z"})
	}
	home := t.TempDir()
	t.Setenv("ROPEWALK_HOME", home)
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "S3_ENDPOINT"} {
		t.Setenv(name, "")
	}
	recordtest.Unpack(t, objects, filepath.Join(home, "s3", "ropewalk"))
	return t.TempDir()
}

func TestRunsAreComparedWithoutServers(t *testing.T) {
	out := recordOf(t)
	run := func(args ...string) (code int, stdout, stderr string) {
		var o, e bytes.Buffer
		code = Run(context.Background(), args, &o, &e)
		return code, o.String(), e.String()
	}
	code, text, messages := run("diff", "a", "b")
	require.Equal(t, exitDone, code, messages)
	require.Empty(t, messages, "nothing is started")
	require.Contains(t, text, "A and B first differ before step 1, stage warm_start, table checkpoint")
	require.Contains(t, text, "  seed  1        1  2\n")

	code, text, messages = run("diff", "a", "b", "--json")
	require.Equal(t, exitDone, code, messages)
	var c struct {
		Recipe struct {
			Differences []struct {
				Path   string   `json:"path"`
				Values []string `json:"values"`
			} `json:"differences"`
		} `json:"recipe"`
		Steps []struct {
			Step    int                   `json:"step"`
			Figures map[string][]*float64 `json:"figures"`
		} `json:"steps"`
	}
	require.NoError(t, json.Unmarshal([]byte(text), &c))
	require.Equal(t, "seed", c.Recipe.Differences[0].Path)
	require.Equal(t, []string{"1", "2"}, c.Recipe.Differences[0].Values)
	require.Len(t, c.Steps, 2)
	require.InDelta(t, 0.5, *c.Steps[0].Figures["success"][1], 1e-12)

	file := filepath.Join(out, "both.html")
	code, _, messages = run("report", "a", "b", "-o", file)
	require.Equal(t, exitDone, code, messages)
	require.Equal(t, "wrote "+file+"\n", messages)
	page, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(page), "ropewalk comparison")
	code, _, messages = run("report", "a", "b", "-o", out)
	require.Equal(t, exitDone, code, messages)
	require.FileExists(t, filepath.Join(out, "a-b.html"))

	code, _, messages = run("diff", "a", "none")
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "no such run in the record: none")
	code, _, messages = run("report", "a", "a", "-o", file)
	require.Equal(t, exitBadInput, code)
	require.Contains(t, messages, "run a is named twice")
}
