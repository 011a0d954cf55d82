package e2e

import (
	"bytes"
	"io"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// The secrets of the test, by the way in which they come in. None of them may come out.
var secrets = map[string]string{
	"a reference to a variable": "sk-mcp-5f0c2a9d71", "a reference to a file": "sk-file-88ac30b1e4",
	"the sandbox's token": "sandbox-token-4471ab", "Temporal's key": "temporal-key-90d1f2c3",
	"the password of an address": "hunter2-in-an-address",
}

// TestNoSecretComesOut passes secrets in by every way and searches what comes out: standard output and error, logs at
// their most detailed, metrics, the record, the servers' logs, Temporal's database, and messages about faults.
func TestNoSecretComesOut(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	// The server answers with the secrets that it was sent, as a careless one does.
	var sent atomic.Pointer[http.Header]
	echo := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent.Store(&r.Header)
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = io.WriteString(w, "you sent "+strings.Join(r.Header.Values("Authorization"), " ")+" and "+
			r.Header.Get("X-File"))
	}))
	defer echo.Close()
	folder := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(folder, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	keyFile := write("key", secrets["a reference to a file"]+"\n")
	token := write("token", secrets["the sandbox's token"])
	h = h.with("ROPEWALK_NO_WORKER=1", "ROPEWALK_LOG_LEVEL=debug", "ROPEWALK_LOG_FORMAT=json",
		"MCP_KEY="+secrets["a reference to a variable"], "ROPEWALK_SANDBOX_TOKEN="+secrets["the sandbox's token"])
	s3 := variable(h.env, "AWS_SECRET_ACCESS_KEY")
	found := search{known: map[string]string{"the store's key": s3}}
	for way, secret := range secrets {
		found.known[way] = secret
	}
	said := func(c *command) {
		found.in(t, strings.Join(c.args, " ")+": out", []byte(c.out.String()))
		found.in(t, strings.Join(c.args, " ")+": err", []byte(c.err.String()))
	}

	node := h.serveSandbox(t, "--token-file", token)
	worker := h.with("TEMPORAL_API_KEY="+secrets["Temporal's key"]).startWorker(t, "--sandbox-address", node.address,
		"--metrics-address", "127.0.0.1:0")
	metrics := worker.announces(t, metricsAt)

	text, err := os.ReadFile(tiny())
	require.NoError(t, err)
	server := "rollout:\n  protocol: hermes\n  mcp:\n    - name: wiki\n      url: " + echo.URL + "/mcp\n" +
		"      headers: ['Authorization=Bearer ${env:MCP_KEY}', 'X-File=${file:" + keyFile + "}']\n"
	recipe := strings.Replace(string(text), "rollout:\n", server, 1)
	refused := h.start(t, "run", write("mcp.yaml", recipe), "--run-id", "refused", "--json")
	require.NotEqual(t, 0, refused.wait(t).code)
	require.Contains(t, refused.err.String(), "Unauthorized")
	require.NotNil(t, sent.Load())
	require.Equal(t, "Bearer "+secrets["a reference to a variable"], sent.Load().Get("Authorization"), "it was used")
	require.Equal(t, secrets["a reference to a file"], sent.Load().Get("X-File"))
	said(refused)

	whole := h.start(t, "run", tiny(), "--run-id", "whole", "--json", "--set", "steps=2")
	whole.wait(t).ok(t)
	said(whole)
	for _, args := range [][]string{{"follow", "refused"}, {"show", "whole"}, {"runs"}, {"verify", "whole"},
		{"export", "trajectories", "whole", "-o", filepath.Join(folder, "exported.jsonl")},
		{"report", "whole", "-o", filepath.Join(folder, "report.html")}, {"sql", "select * from tool_calls"}} {
		c := h.start(t, args...)
		c.wait(t)
		said(c)
	}
	found.under(t, folder, "key", "token")

	r, err := http.Get(metrics)
	require.NoError(t, err)
	body, err := io.ReadAll(r.Body)
	require.NoError(t, err)
	require.NoError(t, r.Body.Close())
	require.Contains(t, string(body), `ropewalk_stage_committed_total{stage="update"} 2`)
	found.in(t, "metrics", body)
	require.Contains(t, worker.err.String(), `"stage":"update"`)
	worker.end(t)
	node.end(t)
	said(worker)
	said(node.command)
	said(shared.home.up)
	found.under(t, h.objects)
	found.under(t, h.dir)
	found.under(t, filepath.Join(shared.home.dir, "logs"))
	databases, err := filepath.Glob(filepath.Join(shared.home.dir, "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, databases)
	for _, path := range databases {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		found.in(t, path, text)
	}
	h.withoutText(t, found, "whole")

	// Addresses with a password, each in the place of a server's.
	bad := "http://user:" + secrets["the password of an address"] + "@127.0.0.1:1"
	for _, c := range []struct {
		variable string
		args     []string
	}{
		{"TEMPORAL_ADDRESS=" + bad, []string{"run", tiny()}},
		{"TEMPORAL_ADDRESS=" + bad, []string{"runs"}},
		{"TEMPORAL_ADDRESS=" + bad, []string{"monitor"}},
		{"AWS_ENDPOINT_URL_S3=" + bad, []string{"run", tiny()}},
		{"AWS_ENDPOINT_URL_S3=" + bad, []string{"worker"}},
		{"A=B", []string{"worker", "--sandbox-address", bad}},
		{"A=B", []string{"run", write("address.yaml", strings.Replace(recipe, echo.URL, bad, 1))}},
	} {
		broken := h.with("AWS_ACCESS_KEY_ID=id", "AWS_SECRET_ACCESS_KEY="+s3, c.variable).start(t, c.args...)
		require.NotEmpty(t, broken.wait(t).err, "%v", c.args)
		said(broken)
	}
}

// search looks for secrets, by the way in which they came in, and for the forms that they take in other texts.
type search struct{ known map[string]string }

func (s search) in(t *testing.T, where string, text []byte) {
	t.Helper()
	for way, secret := range s.known {
		for _, form := range []string{secret, url.QueryEscape(secret), url.PathEscape(secret)} {
			require.False(t, bytes.Contains(text, []byte(form)), "%s came in as %s and is in %s", form, way, where)
		}
	}
}

// under searches the files of a folder, except for those of these names.
func (s search) under(t *testing.T, folder string, except ...string) {
	t.Helper()
	files := 0
	require.NoError(t, filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		for _, name := range except {
			if entry.Name() == name {
				return nil
			}
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		s.in(t, path, text)
		return nil
	}))
	require.Positive(t, files, folder)
}

// withoutText searches the texts of a run's tables, which are compressed in the files.
func (h *home) withoutText(t *testing.T, s search, run string) {
	t.Helper()
	for _, table := range []schema.Table{schema.Prompts, schema.Turns, schema.ToolCalls, schema.Trajectories,
		schema.Timings} {
		r := h.run(t, "sql", "--run", run, "--csv", "select * from "+string(table)).ok(t)
		require.NotEmpty(t, r.out, table)
		s.in(t, string(table), []byte(r.out))
	}
}
