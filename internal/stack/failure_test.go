package stack

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A worker that cannot start is given up after some tries; the error holds what it wrote.
func TestBrokenWorker(t *testing.T) {
	needServers(t)
	o := freePorts(t, testOptions(t.TempDir()))
	o.Worker[1] = "broken"
	_, err := Join(context.Background(), o)
	require.ErrorContains(t, err, "the worker ended before it was ready (exit status 1)")
	require.ErrorContains(t, err, "cannot open the engine: no such file")
	require.ErrorContains(t, err, "given up after 3 tries in a row")
}

// A part that goes on dying after it was healthy is given up; only leases that need it are lost.
func TestGivenUpPart(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	reader, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	trainer, _ := join(t, root, nil)
	w := layout{root}.readyFile()
	go func() { // kills every worker that becomes ready
		for trainer.Err() == nil {
			if text, err := os.ReadFile(w); err == nil && strings.TrimSpace(string(text)) != "" {
				pid := 0
				for _, c := range strings.TrimSpace(string(text)) {
					pid = 10*pid + int(c-'0')
				}
				if p, err := os.FindProcess(pid); err == nil {
					_ = p.Kill()
				}
			}
			time.Sleep(20 * time.Millisecond)
		}
	}()
	select {
	case <-trainer.Done():
	case <-time.After(30 * time.Second):
		t.Fatal("the worker was not given up")
	}
	require.ErrorIs(t, trainer.Err(), ErrLost)
	require.ErrorContains(t, trainer.Err(), "given up after 3 tries in a row")
	require.NoError(t, reader.Err())
	require.Equal(t, 403, statusOf(t, reader.Addresses().S3Endpoint))
	again, _ := join(t, root, nil)
	require.NoError(t, again.Err(), "a later command tries anew")
}

// A worker that ignores SIGTERM is killed.
func TestStubbornWorker(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Worker[1] = "stubborn" })
	pid := currentState(t, root).Parts[partWorker]
	began := time.Now()
	require.NoError(t, l.Close())
	require.False(t, alive(pid))
	require.GreaterOrEqual(t, time.Since(began), testTuning.stopTimeout)
}

func TestMissingTool(t *testing.T) {
	needServers(t)
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	_, err := FindTool("temporal")
	require.ErrorIs(t, err, ErrNoTool)
	require.ErrorContains(t, err, "install temporal, or install Go and run `make tools`")
	_, err = Join(context.Background(), testOptions(t.TempDir()))
	require.ErrorContains(t, err, "neither on PATH nor in .tools")
}

// Existing servers are used and none is started.
func TestExistingServers(t *testing.T) {
	needServers(t)
	host, _ := join(t, t.TempDir(), func(o *Options) { o.NoWorker = true })
	a := host.Addresses()
	for _, kv := range a.Env() {
		key, value, _ := strings.Cut(kv, "=")
		t.Setenv(key, value)
	}
	root := t.TempDir()
	guest, progress := join(t, root, func(o *Options) { o.NoWorker = true })
	require.Equal(t, a.Temporal, guest.Addresses().Temporal)
	require.Equal(t, a.S3Endpoint, guest.Addresses().S3Endpoint)
	require.NoFileExists(t, layout{root}.state())
	require.Empty(t, progress.text())
	peak, err := guest.PeakMB(context.Background(), false)
	require.NoError(t, err)
	require.Greater(t, peak, 1.0)

	// A namespace that an existing server lacks is made, with our search attributes.
	t.Setenv("TEMPORAL_NAMESPACE", "other")
	other, _ := join(t, root, func(o *Options) { o.NoWorker = true })
	require.Equal(t, "other", other.Addresses().Namespace)
	checkNamespace(t, other.Addresses())

	// With a worker there is a supervisor, for the worker alone.
	worker, _ := join(t, root, nil)
	require.Equal(t, a.Temporal, worker.Addresses().Temporal)
	parts := currentState(t, root).Parts
	require.Len(t, parts, 1)
	require.NotZero(t, parts[partWorker])

	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	o := testOptions(root)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "its S3 is "+a.S3Endpoint+", this command's environment selects http://127.0.0.1:1")
}

// What the environment names must be what the running stack has; what it says about other servers
// (keys, tokens, TLS) is not for the local ones.
func TestEnvironmentOfAnotherServer(t *testing.T) {
	needServers(t)
	t.Setenv("TEMPORAL_API_KEY", "of another server")
	t.Setenv("AWS_SESSION_TOKEN", "of another server")
	root := t.TempDir()
	l, _ := join(t, root, nil)
	checkNamespace(t, l.Addresses())
	checkWorkerEnv(t, root, l.Addresses())
	for _, kv := range []string{"TEMPORAL_API_KEY=", "TEMPORAL_TLS=false", "AWS_SESSION_TOKEN="} {
		require.Contains(t, l.Addresses().Env(), kv)
	}
	for name, want := range map[string]string{"ROPEWALK_S3_BUCKET": "its bucket is ropewalk,", "TEMPORAL_NAMESPACE": "its namespace is ropewalk,"} {
		t.Run(name, func(t *testing.T) {
			t.Setenv(name, "other")
			_, err := Join(context.Background(), testOptions(root))
			require.ErrorContains(t, err, want+" this command's environment selects other")
		})
	}
	require.NoError(t, l.Close())
	t.Setenv("ROPEWALK_S3_BUCKET", "../escape")
	_, err := Join(context.Background(), testOptions(root))
	require.ErrorContains(t, err, `use bucket "../escape": a name is`)
}

func TestExistingServersThatDoNotAnswer(t *testing.T) {
	needServers(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	refused := l.Addr().String()
	l.Close()
	o := testOptions(t.TempDir())
	o.Need = Need{S3: true}
	t.Setenv("AWS_ENDPOINT_URL_S3", "http://"+refused)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "an S3 endpoint is set without credentials")
	t.Setenv("AWS_ACCESS_KEY_ID", "k")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "s")
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "connection refused: start it, or unset the variable")
	t.Setenv("AWS_ENDPOINT_URL_S3", refused)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "is no URL")

	o.Need = Need{Temporal: true}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("TEMPORAL_ADDRESS", refused)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "use the Temporal server at "+refused)
}

func TestTemporalTomlSelects(t *testing.T) {
	needServers(t)
	path := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(path, []byte("[profile.default]\naddress = \"there:7233\"\nnamespace = \"mine\"\n"), 0o600))
	t.Setenv("TEMPORAL_CONFIG_FILE", path)
	e, err := findExisting()
	require.NoError(t, err)
	require.Equal(t, existing{temporal: "there:7233", namespace: "mine"}, e)
	require.NoError(t, os.WriteFile(path, []byte("not toml"), 0o600))
	_, err = findExisting()
	require.ErrorContains(t, err, "load Temporal's client configuration")
}

func TestDamagedCredentials(t *testing.T) {
	l := layout{t.TempDir()}
	made, err := l.loadCredentials()
	require.NoError(t, err)
	again, err := l.loadCredentials()
	require.NoError(t, err)
	require.Equal(t, made, again)
	require.NoError(t, os.WriteFile(l.credentials(), []byte("{}"), 0o600))
	_, err = l.loadCredentials()
	require.ErrorContains(t, err, "is damaged: remove it and new ones are made")
}

func TestHTTPAnswer(t *testing.T) {
	status := http.StatusForbidden
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(status) }))
	defer srv.Close()
	require.NoError(t, httpAnswer(context.Background(), srv.URL))
	status = http.StatusServiceUnavailable
	require.ErrorContains(t, httpAnswer(context.Background(), srv.URL), "503")
}
