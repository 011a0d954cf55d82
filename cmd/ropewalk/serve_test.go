package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/hubtest"
	"github.com/ropewalk/ropewalk/internal/testing/transcript"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/rollout"
)

// servedModel writes a small random model with the tokenizer of runs.
func servedModel(t *testing.T, dir string) string {
	t.Helper()
	tokens, err := rollout.NewTokenizer()
	require.NoError(t, err)
	require.NoError(t, checkpoint.Init(dir, checkpoint.Shape{Vocab: tokens.VocabSize(), Hidden: 16, Layers: 1, Heads: 2,
		KVHeads: 1, HeadDim: 8, FFN: 16, Positions: 64, RopeTheta: 10000, NormEps: 1e-6, Pad: -1}, 1, tokens.Files()))
	digest, err := checkpoint.Digest(dir)
	require.NoError(t, err)
	return digest
}

// listens finds the address in what the command prints.
var listens = regexp.MustCompile(`listening on (https?://\S+)/v1: (\S+),`)

// serving runs the command until the test ends, and returns the address and the model's name.
func serving(t *testing.T, args ...string) (address, name string) {
	t.Helper()
	var out, messages transcript.Transcript
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan int, 1)
	go func() {
		ended <- Run(ctx, append([]string{"serve", "--listen", "127.0.0.1:0"}, args...), &out, &messages)
	}()
	t.Cleanup(func() {
		cancel()
		require.Equal(t, exitDone, <-ended, messages.String())
	})
	require.Eventually(t, func() bool { return listens.MatchString(out.String()) }, 30*time.Second, 10*time.Millisecond,
		messages.String())
	found := listens.FindStringSubmatch(out.String())
	return found[1], found[2]
}

// weightsBehind asks for a completion and returns the digest of the weights behind it.
func weightsBehind(t *testing.T, address, token string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodPost, address+"/v1/completions", strings.NewReader(
		`{"prompt": "1 + 1", "max_tokens": 3}`))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Authorization", "Bearer "+token)
	response, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, response.StatusCode, "%s", data)
	var answer struct{ Ropewalk struct{ Weights string } }
	require.NoError(t, json.Unmarshal(data, &answer))
	return answer.Ropewalk.Weights
}

func TestServeAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "my-model")
	digest := servedModel(t, dir)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	address, name := serving(t, dir, "--token-file", token)
	require.Equal(t, "my-model", name)
	require.Equal(t, digest, weightsBehind(t, address, "secret"))
	t.Setenv("ROPEWALK_MODELS", filepath.Dir(dir))
	_, name = serving(t, "my-model", "--name", "other")
	require.Equal(t, "other", name)
}

// A hub's model is fetched once, and is served when the hub is gone.
func TestServeAHubsModel(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "model")
	digest := servedModel(t, dir)
	files := map[string][]byte{}
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, e := range entries {
		files[e.Name()], err = os.ReadFile(filepath.Join(dir, e.Name()))
		require.NoError(t, err)
	}
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	server := hubtest.New(t, map[string]hubtest.Repository{"owner/model": {Files: files}})
	t.Setenv("HF_ENDPOINT", server.URL)
	address, name := serving(t, "hf://owner/model")
	require.Equal(t, "owner/model", name)
	require.Equal(t, digest, weightsBehind(t, address, ""))
	server.Close()
	address, _ = serving(t, "hf://owner/model")
	require.Equal(t, digest, weightsBehind(t, address, ""))
	require.Contains(t, refused(t, "serve", "hf://owner/other", "--listen", "127.0.0.1:0"), "was not fetched before")
}

// What cannot be served is refused with its field before anything is loaded.
func TestServeRefuses(t *testing.T) {
	t.Setenv("ROPEWALK_HOME", t.TempDir())
	for _, name := range []string{"AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3", "TEMPORAL_ADDRESS"} {
		t.Setenv(name, "")
	}
	empty := filepath.Join(t.TempDir(), "empty")
	require.NoError(t, os.WriteFile(empty, []byte("\n"), 0o600))
	for line, want := range map[string]string{
		"serve ./m --rows 0":                                   "--rows is 0",
		"serve ./m --queue 0":                                  "--queue is 0",
		"serve ./m --kv-tokens -1":                             "--kv-tokens is -1",
		"serve ./m --listen 0.0.0.0:0":                         "open to other machines: name a token",
		"serve ./m --listen 127.0.0.1:0 --token-file " + empty: "is empty",
		"serve ./m --listen 127.0.0.1:0 --tls-cert x":          "belong together",
		"serve ./m --listen 127.0.0.1:0":                       "no such file",
		"serve m.gguf --listen 127.0.0.1:0":                    "no such file",
		"serve ftp://m --listen 127.0.0.1:0":                   "want a path, hf://, s3://",
		"serve s3://bucket --listen 127.0.0.1:0":               "the address is not s3://BUCKET/KEY",
		"serve s3://bucket/key --listen 127.0.0.1:0":           "no S3 server is selected",
		"serve no/../run --listen 127.0.0.1:0":                 "no such file",
		"serve a.run! --listen 127.0.0.1:0":                    "a folder is named as a path",
	} {
		require.Contains(t, refused(t, strings.Fields(line)...), want, line)
	}
}
