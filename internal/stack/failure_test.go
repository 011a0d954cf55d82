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

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/temporalconf"
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

// A server whose program keeps failing after it was healthy is given up; only leases that need it are lost.
func TestGivenUpServer(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	reader, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	trainer, _ := join(t, root, func(o *Options) { o.Worker[1] = "crashing" })
	select {
	case <-trainer.Done():
	case <-time.After(5 * time.Minute):
		t.Fatal("the worker was not given up")
	}
	require.ErrorIs(t, trainer.Err(), errLost)
	require.ErrorContains(t, trainer.Err(), "the worker died (exit status 1)")
	require.ErrorContains(t, trainer.Err(), "index out of range")
	require.ErrorContains(t, trainer.Err(), "given up after 3 tries in a row")
	require.NoError(t, reader.Err())
	require.Equal(t, 403, statusOf(t, reader.Addresses().S3Endpoint))
	join(t, root, nil) // a later command tries again
}

// A server that is killed is started again, however often that happens: its program is not at fault.
func TestServerKilledManyTimes(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	l, progress := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	for range testTuning.maxQuick + 2 {
		killAndWatch(t, root, s3Name, progress, "S3 died (signal: killed): starting it again")
	}
	require.NoError(t, l.Err())
	require.Equal(t, 403, statusOf(t, l.Addresses().S3Endpoint))
}

// A worker that ignores SIGTERM is killed.
func TestStubbornWorker(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	l, _ := join(t, root, func(o *Options) { o.Worker[1] = "stubborn" })
	pid := current(t, root).servers[workerName]
	require.NoError(t, l.Close())
	require.False(t, alive(pid))
	require.FileExists(t, filepath.Join(root, "worker.ignored"))
}

func TestMissingTool(t *testing.T) {
	needServers(t)
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir())
	_, err := FindTool("temporal")
	require.ErrorIs(t, err, errNoTool)
	require.ErrorContains(t, err, "install temporal, or install Go and run `make tools`")
	_, err = Join(context.Background(), testOptions(t.TempDir()))
	require.ErrorContains(t, err, "neither on PATH nor in .tools")
}

// Existing servers are used, and none is started.
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
	require.NoDirExists(t, layout{root}.servers())
	require.Empty(t, progress.text())
	require.Greater(t, guest.PeakMB(), 1.0)

	// The namespace of temporal.yaml is made on an existing server that lacks it, with our search attributes.
	t.Setenv("TEMPORAL_NAMESPACE", "other")
	conf, err := temporalconf.Load("")
	require.NoError(t, err)
	conf.Namespace = "other"
	other, _ := join(t, root, func(o *Options) { o.NoWorker, o.Temporal = true, &conf })
	require.Equal(t, "other", other.Addresses().Namespace)
	checkNamespace(t, other.Addresses())

	// Another one is not: its name may be misspelt.
	t.Setenv("TEMPORAL_NAMESPACE", "ropewlak")
	var o Options
	for _, noWorker := range []bool{true, false} {
		o = testOptions(t.TempDir())
		o.NoWorker = noWorker
		_, err = Join(context.Background(), o)
		require.ErrorAs(t, err, new(badinput.Error))
		require.EqualError(t, err, "the Temporal server at "+a.Temporal+" has no namespace ropewlak, which "+
			"TEMPORAL_NAMESPACE or temporal.toml selects; did you mean ropewalk?\n"+
			"its namespaces are default, other, ropewalk\n"+
			"to create it: temporal operator namespace create --address "+a.Temporal+" --namespace ropewlak "+
			"--retention 720h0m0s")
		require.NoDirExists(t, layout{o.Root}.servers(), "nothing is started")
	}
	t.Setenv("TEMPORAL_NAMESPACE", "other")

	// With a worker there is a supervisor, that of the worker alone.
	worker, _ := join(t, root, nil)
	require.Equal(t, a.Temporal, worker.Addresses().Temporal)
	servers := current(t, root).servers
	require.Len(t, servers, 1)
	require.NotZero(t, servers[workerName])

	t.Setenv("AWS_ENDPOINT_URL_S3", "http://127.0.0.1:1")
	o = testOptions(root)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "its S3 is "+a.S3Endpoint+", this command's environment selects http://127.0.0.1:1")
}

// The local stack has its own namespace alone.
func TestMisspeltNamespaceOfTheLocalStack(t *testing.T) {
	needServers(t)
	t.Setenv("TEMPORAL_NAMESPACE", "ropewlak")
	o := freePorts(t, testOptions(t.TempDir()))
	o.NoWorker = true
	_, err := Join(context.Background(), o)
	require.ErrorAs(t, err, new(badinput.Error))
	require.ErrorContains(t, err, " has no namespace ropewlak, which TEMPORAL_NAMESPACE or temporal.toml selects; did "+
		"you mean ropewalk?\nits namespaces are default, ropewalk\nunset TEMPORAL_NAMESPACE to use ropewalk, the "+
		"local stack's own")
	require.NotContains(t, err.Error(), "the end of")
}

// A Temporal server that does not answer is named, with the plain cause, before anything starts.
func TestUnreachableTemporal(t *testing.T) {
	forgetServers(t)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // it accepts connections and says nothing
	require.NoError(t, err)
	closed := silent.Addr().String()
	require.NoError(t, silent.Close())
	for address, want := range map[string]string{
		closed: "the Temporal server at " + closed + " cannot be reached: dial tcp " + closed + ": connect: " +
			"connection refused: start it, correct TEMPORAL_ADDRESS or temporal.toml, or unset the variable to use a " +
			"local server",
		"nonsense": `the address of the Temporal server is "nonsense", it must be HOST:PORT: correct TEMPORAL_ADDRESS`,
	} {
		t.Setenv("TEMPORAL_ADDRESS", address)
		o := testOptions(t.TempDir())
		said := &lines{}
		o.Progress = said.add
		_, err := Join(context.Background(), o)
		require.ErrorContains(t, err, want)
		require.ErrorAs(t, err, new(badinput.Error))
		require.Empty(t, said.text(), "nothing is started")
	}
}

// The names in the environment must be those of the running stack. Settings for other servers (keys, tokens, TLS) do
// not apply to the local ones.
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
	for name, want := range map[string]string{"ROPEWALK_S3_BUCKET": "its bucket is ropewalk,",
		"TEMPORAL_NAMESPACE": "its namespace is ropewalk,"} {
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
	require.ErrorContains(t, err, "is not a URL")

	o.Need = Need{Temporal: true}
	t.Setenv("AWS_ENDPOINT_URL_S3", "")
	t.Setenv("TEMPORAL_ADDRESS", refused)
	_, err = Join(context.Background(), o)
	require.ErrorContains(t, err, "the Temporal server at "+refused)
}

func TestTemporalTomlSelects(t *testing.T) {
	needServers(t)
	path := filepath.Join(t.TempDir(), "temporal.toml")
	require.NoError(t, os.WriteFile(path, []byte("[profile.default]\naddress = \"there:7233\"\nnamespace = \"mine\"\n"),
		0o600))
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
