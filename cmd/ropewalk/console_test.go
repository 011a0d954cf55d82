package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestOthersTextDoesNotControlTheTerminal prints what others have written: names in errors and contents of files.
func TestOthersTextDoesNotControlTheTerminal(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	const evil = "\x1b]0;title\x07\x1b[2J\u009b31m\u202e\rx"
	file := filepath.Join(t.TempDir(), "data.json")
	require.NoError(t, os.WriteFile(file, []byte(`[{"a": "\u202e\u009b31m"}, {"a": "`+"\u202e\u009b31m"+`"}]`), 0o600))
	for _, args := range [][]string{{"inspect", evil}, {evil}, {"show", "--" + evil}, {"inspect", file},
		{"inspect", file, "--json"}} {
		var out, messages bytes.Buffer
		code := Run(context.Background(), args, &out, &messages)
		printed := out.String() + messages.String()
		require.NotEmpty(t, printed, args)
		require.NotContainsf(t, printed, "\x1b", "exit %d", code)
		for _, c := range []string{"\x07", "\r", "\u009b", "\u202e"} {
			require.NotContains(t, printed, c, args)
		}
	}
}
