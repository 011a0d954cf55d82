package main

import (
	"bytes"
	"encoding/json"
	"runtime/debug"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	code, err := codeDigest()
	require.NoError(t, err)
	for _, args := range [][]string{{"version"}, {"--version"}} {
		var out, messages bytes.Buffer
		require.Equal(t, exitDone, Run(t.Context(), args, &out, &messages), messages.String())
		require.Regexp(t, `^ropewalk .*\(go.*, linux/.*\)\nprogram  `+code+"\n$", out.String(), args)
	}
	var out, messages bytes.Buffer
	require.Equal(t, exitDone, Run(t.Context(), []string{"version", "--json"}, &out, &messages))
	var v version
	require.NoError(t, json.Unmarshal(out.Bytes(), &v))
	require.Equal(t, code, v.Code)
}

func TestVersionOfACommit(t *testing.T) {
	t.Parallel()
	v, err := versionOf(&debug.BuildInfo{Main: debug.Module{Version: "v1.2.3"}, Settings: []debug.BuildSetting{
		{Key: "vcs.revision", Value: "0123456789abcdef0123"}, {Key: "vcs.modified", Value: "true"}}})
	require.NoError(t, err)
	require.Contains(t, v.String(), "ropewalk v1.2.3, commit 0123456789ab with changes (")
}
