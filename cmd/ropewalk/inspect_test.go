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
