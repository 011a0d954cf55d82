package bench

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestProgram(t *testing.T) {
	for _, c := range []struct {
		name, script string
		fault        string // "" where the script's object {"n": 3} is read
	}{
		{"prints its object", `echo going on >&2; echo '{"n": 3}'`, ""},
		{"prints something else", `echo three`, "read what sh -c echo three printed: invalid character"},
		{"fails", `echo '{"n": 3}'; for i in 1 2 3 4 5 6 7 8 9; do echo line $i >&2; done; exit 4`,
			"exit status 4\nline 2\nline 3\nline 4\nline 5\nline 6\nline 7\nline 8\nline 9"},
		{"fails silently", `exit 4`, "sh -c exit 4: exit status 4"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got struct{ N int }
			err := Program{Path: "sh"}.Run(t.Context(), &got, "-c", c.script)
			if c.fault == "" {
				require.NoError(t, err)
				require.Equal(t, 3, got.N)
				return
			}
			require.ErrorContains(t, err, c.fault)
			require.Zero(t, got.N)
		})
	}
}

func TestProgramPassesItsProgressOn(t *testing.T) {
	var progress bytes.Buffer
	err := Program{Path: "sh", Progress: &progress}.Run(t.Context(), nil, "-c", "echo going on >&2; echo done; exit 4")
	require.EqualError(t, err, "sh -c echo going on >&2; echo done; exit 4: exit status 4")
	require.Equal(t, "going on\n", progress.String())
}

func TestProgramIsInterrupted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	progress := &begun{cancel: cancel}
	err := Program{Path: "sh", Progress: progress}.Run(ctx, nil, "-c",
		"trap 'echo cleaned up >&2; exit 130' INT; echo begun >&2; for i in $(seq 2000); do sleep 0.01; done")
	require.ErrorContains(t, err, "exit status 130")
	require.Equal(t, "begun\ncleaned up\n", progress.said.String())
}

// begun cancels once something is written. The buffer is no embedded one, whose ReadFrom would pass Write by.
type begun struct {
	said   bytes.Buffer
	cancel func()
}

func (b *begun) Write(p []byte) (int, error) {
	defer b.cancel()
	return b.said.Write(p)
}

func TestTrainAndQuery(t *testing.T) {
	echo := Program{Path: filepath.Join(t.TempDir(), "echo")}
	require.NoError(t, os.WriteFile(echo.Path, []byte("#!/bin/sh\nprintf '{\"rows\": [[\"%s\"]]}' \"$*\"\n"), 0o755))
	var rows [][]string
	require.NoError(t, echo.Query(t.Context(), &rows, "select 1"))
	require.Equal(t, [][]string{{"sql --json select 1"}}, rows)
	var ran struct{ Rows [][]string }
	require.NoError(t, echo.Train(t.Context(), &ran, "r", "a=1", "b=2"))
	require.Equal(t, [][]string{{"run r --json --set a=1 --set b=2"}}, ran.Rows)
}
