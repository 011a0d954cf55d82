package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// A local file needs no server.
func TestInspectAFile(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	rows := []schema.RewardRow{{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Reward: 0.25, Verdict: "exact"}}
	data, err := schema.Encode(rows)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "rewards.parquet")
	require.NoError(t, os.WriteFile(file, data, 0o600))

	var out, messages bytes.Buffer
	require.Equal(t, exitDone, Run(context.Background(), []string{"inspect", file}, &out, &messages), messages.String())
	require.Contains(t, out.String(), "table rewards, schema version")
	require.Contains(t, out.String(), "reward                   0.25")
	require.NotContains(t, messages.String(), "starting")

	out.Reset()
	require.Equal(t, exitDone, Run(context.Background(), []string{"inspect", file, "--json"}, &out, &messages))
	var got struct {
		Digest string
		Shard  struct{ Rows int }
	}
	require.NoError(t, json.Unmarshal(out.Bytes(), &got))
	require.Equal(t, schema.Digest(data), got.Digest)
	require.Equal(t, 1, got.Shard.Rows)

	out.Reset()
	messages.Reset()
	require.NoError(t, os.WriteFile(file, data[:len(data)-1], 0o600))
	require.Equal(t, exitFailed, Run(context.Background(), []string{"inspect", file}, &out, &messages))
	require.Empty(t, out.String())
	require.Contains(t, messages.String(), file+": file is damaged")
}

// A target comes into place whole, or leaves nothing.
func TestTarget(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "page.html")
	kept, err := newTarget(path)
	require.NoError(t, err)
	_, err = kept.WriteString("whole")
	require.NoError(t, err)
	require.NoFileExists(t, path)
	require.NoError(t, kept.commit())
	require.NoError(t, kept.abandon())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(text))

	lost, err := newTarget(path)
	require.NoError(t, err)
	_, err = lost.WriteString("half")
	require.NoError(t, err)
	require.NoError(t, lost.abandon())
	left, err := os.ReadDir(folder)
	require.NoError(t, err)
	require.Len(t, left, 1)
	text, err = os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, "whole", string(text))
}
