package e2e

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/store/s3"
	"github.com/ropewalk/ropewalk/store/storetest"
)

// awsEnv selects the test's S3 server the standard way.
func awsEnv(s storetest.Server) []string {
	return []string{"AWS_ENDPOINT_URL_S3=" + s.Endpoint, "AWS_ACCESS_KEY_ID=" + s.AccessKey, "AWS_SECRET_ACCESS_KEY=" +
		s.SecretKey}
}

// versitygw starts an S3 server with the default bucket, as a user would. The stack does not manage it.
func versitygw(t *testing.T) storetest.Server {
	t.Helper()
	needServers(t)
	s := storetest.Versitygw(t)
	client, err := s3.New(s3.Options{Endpoint: s.Endpoint, Bucket: "ropewalk", AccessKey: s.AccessKey,
		SecretKey: s.SecretKey})
	require.NoError(t, err)
	require.NoError(t, client.EnsureBucket(context.Background()))
	return s
}

// temporalServer starts a Temporal server, which the stack does not manage, and returns its address. If another process
// takes the free port that was found for it, it tries another.
func temporalServer(t *testing.T) string {
	t.Helper()
	needServers(t)
	program, err := stack.FindTool("temporal")
	require.NoError(t, err)
	for range 5 {
		address := closedAddress(t)
		_, port, err := net.SplitHostPort(address)
		require.NoError(t, err)
		cmd := exec.Command(program, "server", "start-dev", "--headless", "--port", port, "--log-level", "never")
		cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		require.NoError(t, cmd.Start())
		ended := make(chan struct{})
		go func() { defer close(ended); _ = cmd.Wait() }()
		t.Cleanup(func() { _ = cmd.Process.Kill(); <-ended })
		if answers(t, address, ended) {
			return address
		}
	}
	require.Fail(t, "no Temporal server could be started")
	return ""
}

// answers waits until a Temporal server answers at the address. It reports false if the process ends first.
func answers(t *testing.T, address string, ended <-chan struct{}) bool {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for {
		select {
		case <-ended:
			return false
		case <-ctx.Done():
			require.Fail(t, "the Temporal server at "+address+" does not answer")
		case <-time.After(100 * time.Millisecond):
		}
		attempt, end := context.WithTimeout(ctx, 5*time.Second)
		c, err := client.DialContext(attempt, client.Options{HostPort: address})
		end()
		if err == nil {
			c.Close()
			return true
		}
	}
}

func TestExistingServersAreUsed(t *testing.T) {
	t.Parallel()
	want := baseReport(t)
	objects := versitygw(t)
	lendBase(t, objects)
	h := newHome(t, t.TempDir(), append(awsEnv(objects), "TEMPORAL_ADDRESS="+temporalServer(t))...)
	run := h.start(t, recipe("elsewhere")...)
	run.says(t, "the worker is ready")
	require.Equal(t, []string{"worker"}, h.parts(t), "the worker is all that is started")
	r := run.wait(t).ok(t)
	got := r.report(t)
	require.Equal(t, want.Digest, got.Digest, "the servers are no part of the outcome")
	require.NotContains(t, r.err, "starting Temporal")
	require.NotContains(t, r.err, "starting S3")
	require.NoFileExists(t, filepath.Join(h.dir, "temporal.db"))
	require.NoDirExists(t, filepath.Join(h.dir, "s3"))
	there := record{filepath.Join(objects.Folder, "ropewalk")}
	require.Equal(t, shared.home.record().outline(t, "base"), there.outline(t, "elsewhere"))

	// Commands that only read need no process at all.
	v := h.run(t, "verify", "elsewhere").ok(t)
	require.NotContains(t, v.err, "starting")
}

// parts names the processes of the running stack.
func (h *home) parts(t *testing.T) []string {
	t.Helper()
	var out []string
	for name, pid := range h.state(t).Parts {
		if pid > 0 {
			out = append(out, name)
		}
	}
	return out
}

// Faults of the user's servers: for each the command says what is wrong and what to do, and exits.
func TestFaultsOfTheEnvironment(t *testing.T) {
	t.Parallel()
	objects := versitygw(t)
	good := awsEnv(objects)
	closed := closedAddress(t)
	for _, c := range []struct {
		name string
		env  []string
		args []string
		want []string
	}{
		{"wrong secret", append(awsEnv(objects), "AWS_SECRET_ACCESS_KEY=wrong-secret-0815"), recipe("x"),
			[]string{"the secret does not belong to the access key; check AWS_SECRET_ACCESS_KEY"}},
		{"unknown key", append(awsEnv(objects), "AWS_ACCESS_KEY_ID=stranger"), recipe("x"),
			[]string{"the server does not know this access key; check AWS_ACCESS_KEY_ID"}},
		{"unknown key, reading", append(awsEnv(objects), "AWS_ACCESS_KEY_ID=stranger"), []string{"runs"},
			[]string{"check AWS_ACCESS_KEY_ID"}},
		{"no credentials", []string{"AWS_ENDPOINT_URL_S3=" + objects.Endpoint}, recipe("x"),
			[]string{"set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or unset AWS_ENDPOINT_URL_S3"}},
		{"missing bucket", append(awsEnv(objects), "ROPEWALK_S3_BUCKET=nowhere"), recipe("x"),
			[]string{"s3://nowhere", "create it, or name another in ROPEWALK_S3_BUCKET"}},
		{"missing bucket, reading", append(awsEnv(objects), "ROPEWALK_S3_BUCKET=nowhere"), []string{"verify", "x"},
			[]string{"s3://nowhere", "create it, or name another in ROPEWALK_S3_BUCKET"}},
		{"no S3 server", []string{"AWS_ENDPOINT_URL_S3=http://" + closed, "AWS_ACCESS_KEY_ID=a",
			"AWS_SECRET_ACCESS_KEY=b"}, recipe("x"),
			[]string{closed, "refused", "start it, or unset the variable to use a local one"}},
		{"a web server, reading", []string{"AWS_ENDPOINT_URL_S3=" + webServer(t), "AWS_ACCESS_KEY_ID=a",
			"AWS_SECRET_ACCESS_KEY=b"}, []string{"runs"},
			[]string{"the server answers with a web page (200 OK), as no S3 server does; check AWS_ENDPOINT_URL_S3"}},
		{"misspelt namespace", append(good, "TEMPORAL_ADDRESS="+temporalServer(t), "TEMPORAL_NAMESPACE=defualt"),
			recipe("x"), []string{"has no namespace defualt", "did you mean default?", "its namespaces are default\n",
				"temporal operator namespace create --address"}},
		{"no Temporal server", append(good, "TEMPORAL_ADDRESS="+closed), recipe("x"),
			[]string{closed, "TEMPORAL_ADDRESS"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := newHome(t, t.TempDir(), c.env...)
			r := h.run(t, c.args...)
			require.Contains(t, []int{1, 2}, r.code, r.err)
			for _, want := range c.want {
				require.Contains(t, r.err, want)
			}
			require.NotContains(t, r.err, objects.SecretKey)
			require.NotContains(t, r.err, "wrong-secret-0815")
			require.Empty(t, r.out)
			require.Less(t, strings.Count(r.err, "\n"), 25, "short enough to be read:\n%s", r.err)
			require.NoFileExists(t, filepath.Join(h.dir, "stack.json"), "nothing is left running")
		})
	}
}

// webServer starts a server that answers every request with a page.
func webServer(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<!DOCTYPE html><html></html>")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// closedAddress returns an address on which no server listens.
func closedAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}
