package hub_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/hub"
	"github.com/ropewalk/ropewalk/internal/testing/hubtest"
)

func TestParse(t *testing.T) {
	for text, want := range map[string][2]string{
		"Qwen/Qwen3-0.6B": {"Qwen/Qwen3-0.6B", "main"}, "a/b@v1.0": {"a/b", "v1.0"},
		"a/b@refs/pr/1": {"a/b", "refs/pr/1"},
	} {
		repository, revision, err := hub.Parse(text)
		require.NoError(t, err)
		require.Equal(t, want, [2]string{repository, revision})
	}
	for _, text := range []string{"", "a", "a/b/c", "a/../b", "a/b@", "a/b@x y", "/a", "a/b@../x", "a/b?c"} {
		_, _, err := hub.Parse(text)
		require.Error(t, err, text)
	}
}

// TestFetch fetches every file of a snapshot, also over a connection that breaks.
func TestFetch(t *testing.T) {
	large := bytes.Repeat([]byte("weights "), 4000)
	files := map[string][]byte{"config.json": []byte("{}"), "model.safetensors": large, "a b/c.txt": []byte("x")}
	server := hubtest.New(t, map[string]hubtest.Repository{"o/m": {Files: files, Cut: true}})
	h := hub.Here("")
	s, err := h.Resolve(t.Context(), "o/m", "main")
	require.NoError(t, err)
	require.Equal(t, hubtest.Commit, s.Commit)
	require.Len(t, s.Files, len(files))
	folder := t.TempDir()
	for _, f := range s.Files {
		var seen int64
		require.NoError(t, h.Fetch(t.Context(), s, f, filepath.Join(folder, f.Name), func(n int64) { seen = n }))
		got, err := os.ReadFile(filepath.Join(folder, f.Name))
		require.NoError(t, err)
		require.Equal(t, files[f.Name], got)
		require.EqualValues(t, len(got), seen)
	}
	require.EqualValues(t, len(files)+1, server.Files.Load(), "one file was asked for twice")
}

// TestReasons reports what the hub says, and no token.
func TestReasons(t *testing.T) {
	const secret = "hf_secretsecret"
	server := hubtest.New(t, map[string]hubtest.Repository{
		"o/gated":  {Token: secret, Files: map[string][]byte{"config.json": []byte("{}")}},
		"o/broken": {Broken: true, Files: map[string][]byte{"config.json": []byte("{}"), "m.safetensors": []byte("w")}},
	})
	_, err := hub.Here("").Resolve(t.Context(), "o/none", "main")
	require.EqualError(t, err, "hf://o/none@main: the hub answers 401 Unauthorized (RepoNotFound): Repository not "+
		"found; the worker has no token (HF_TOKEN, or policy.token in the recipe)")
	_, err = hub.Here("").Resolve(t.Context(), "o/gated", "main")
	require.ErrorContains(t, err, "403 Forbidden (GatedRepo): Access to model gated is restricted")
	_, err = hub.Here("hf_other").Resolve(t.Context(), "o/gated", "main")
	require.ErrorContains(t, err, "the worker's token may not read it")
	require.NotContains(t, err.Error(), "hf_other")
	_, err = hub.Here(secret).Resolve(t.Context(), "o/gated", "v9")
	require.ErrorContains(t, err, "404 Not Found (RevisionNotFound): Invalid rev id: v9")
	t.Setenv("HF_TOKEN", secret)
	_, err = hub.Here("").Resolve(t.Context(), "o/gated", hubtest.Commit)
	require.NoError(t, err)

	s, err := hub.Here("").Resolve(t.Context(), "o/broken", "main")
	require.NoError(t, err)
	for _, f := range s.Files {
		err = hub.Here("").Fetch(t.Context(), s, f, filepath.Join(t.TempDir(), "f"), nil)
		require.ErrorContains(t, err, f.Name+" has the digest")
	}

	server.Close()
	_, err = hub.Here("").Resolve(t.Context(), "o/gated", "main")
	require.ErrorIs(t, err, hub.ErrUnreachable)
	t.Setenv("HF_HUB_OFFLINE", "1")
	_, err = hub.Here("").Resolve(t.Context(), "o/gated", "main")
	require.ErrorContains(t, err, "HF_HUB_OFFLINE is set")
}
