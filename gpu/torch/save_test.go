package torch

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// TestSaveIsWholeOrNothing: a save that fails midway leaves the folder as it was and leaves no other files behind.
func TestSaveIsWholeOrNothing(t *testing.T) {
	for _, mode := range []string{"die:save", "error internal:save", "die:saved"} {
		t.Run(mode, func(t *testing.T) {
			e, _ := openFake(t, mode)
			ctx := t.Context()
			dir, _ := fakeFolder(t, "w")
			require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
			parent := t.TempDir()
			to := filepath.Join(parent, "to")
			require.NoError(t, os.Mkdir(to, 0o700))
			digest, err := e.Save(ctx, policy.RolePolicy, to)
			if mode == "die:saved" {
				require.NoError(t, err, "the checkpoint is there")
				want, err := checkpoint.Digest(to)
				require.NoError(t, err)
				require.Equal(t, want, digest)
				require.ErrorIs(t, e.Discard(ctx, policy.RolePolicy), policy.ErrLost)
			} else {
				require.ErrorIs(t, err, policy.ErrLost)
			}
			held, err := os.ReadDir(parent)
			require.NoError(t, err)
			require.Len(t, held, 1, "nothing else is in the folder")
			if mode != "die:saved" {
				files, err := os.ReadDir(to)
				require.NoError(t, err)
				require.Empty(t, files)
			}
		})
	}
	e, _ := openFake(t, "ok")
	ctx := t.Context()
	dir, _ := fakeFolder(t, "w")
	require.NoError(t, e.Load(ctx, policy.RolePolicy, dir, true))
	to := filepath.Join(t.TempDir(), "deep", "to")
	digest, err := e.Save(ctx, policy.RolePolicy, to)
	require.NoError(t, err)
	want, err := checkpoint.Digest(to)
	require.NoError(t, err)
	require.Equal(t, want, digest)
	s, err := e.State(ctx, policy.RolePolicy)
	require.NoError(t, err)
	require.Equal(t, digest, s.Digest)
	_, err = e.Save(ctx, policy.RolePolicy, to)
	require.ErrorIs(t, err, os.ErrExist)
}

func TestFoldersRefusedBeforeTheEngineSeesThem(t *testing.T) {
	e, _ := openFake(t, "die:load") // it would die of any load
	for name, c := range map[string]struct {
		role  policy.Role
		files map[string]string
		want  error
		text  string
	}{
		"no folder": {policy.RolePolicy, nil, os.ErrNotExist, "config.json"},
		"no weights": {
			policy.RolePolicy, map[string]string{"config.json": `{"model_type":"qwen3"}`}, os.ErrNotExist,
			"model.safetensors",
		},
		"broken config": {
			policy.RolePolicy, map[string]string{"config.json": `{"model_type":`}, checkpoint.ErrCorrupt, "config.json",
		},
		"no model type": {
			policy.RolePolicy, map[string]string{"config.json": `{}`, "model.safetensors": ""}, checkpoint.ErrCorrupt,
			"model_type",
		},
		"code": {
			policy.RolePolicy,
			map[string]string{"config.json": `{"model_type":"x","auto_map":{}}`, "model.safetensors": ""},
			policy.ErrBadRequest, "auto_map",
		},
		"an adapter elsewhere": {
			policy.RolePolicy,
			map[string]string{"config.json": `{"model_type":"x"}`, "model.safetensors": "", "tinker.json": "{}"},
			policy.ErrBadRequest, "the adapter is at a Tinker server",
		},
		"critic, policy": {
			policy.RolePolicy,
			map[string]string{"config.json": `{"model_type":"x"}`, "model.safetensors": "", "value_head.state": ""},
			policy.ErrBadRequest, "value_head.state",
		},
	} {
		dir := t.TempDir()
		for file, text := range c.files {
			require.NoError(t, os.WriteFile(filepath.Join(dir, file), []byte(text), 0o600))
		}
		err := e.Load(t.Context(), c.role, dir, true)
		require.ErrorIs(t, err, c.want, name)
		require.ErrorContains(t, err, c.text, name)
	}
	require.False(t, e.latest().isLost())
}
