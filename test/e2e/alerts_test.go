package e2e

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	namespacepb "go.temporal.io/api/namespace/v1"
	"go.temporal.io/api/workflowservice/v1"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/ropewalk/ropewalk/gpu/device"
	"github.com/ropewalk/ropewalk/gpu/inventory"
	"github.com/ropewalk/ropewalk/gpu/lease"
	"github.com/ropewalk/ropewalk/internal/metrics"
	"github.com/ropewalk/ropewalk/internal/step/api"
	"github.com/ropewalk/ropewalk/internal/testing/devicetest"
	"github.com/ropewalk/ropewalk/internal/testing/longform"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/schema"
)

// alertsVariable asks for the test.
const alertsVariable = "ROPEWALK_TEST_ALERTS"

// TestAlerts has a real Prometheus and a real Alertmanager watch a real run. Every panel of every dashboard has data,
// and every metric a panel. Each fault raises its alert and no other, which ends after the fault. The devices and their
// driver are simulated.
func TestAlerts(t *testing.T) {
	longform.Need(t, alertsVariable, "test-alerts")
	h, _ := needs(t, ownServers("Prometheus watches all of them, and it changes how long Temporal keeps workflows"))
	began := time.Now()
	phase := func(what string) { t.Logf("after %s: %s", time.Since(began).Round(time.Second), what) }
	// A run is still after 20 s, and Temporal's shortest retention, an hour, is near at once.
	w := newTower(t, map[string]string{"3600": "20", "172800": "3598"})
	h = h.with("ROPEWALK_NO_WORKER=1")
	h.ensureUp(t)
	s := h.watched(t, w)
	w.begin() // once there is something to watch
	phase("every panel has data")
	s.panels(t)
	s.shown(t)
	w.clears(t)

	phase("the store answers some requests with errors")
	s.s3.does(s3Sometimes)
	w.fires(t, "RopewalkStoreErrors")
	s.s3.does(s3Well)
	w.clears(t, "RopewalkStoreErrors")

	phase("a run does not move")
	s.s3.does(s3Holds)
	w.fires(t, "RopewalkRunStill")
	s.s3.does(s3Well)
	w.clears(t, "RopewalkRunStill")

	phase("what the store returns is damaged")
	s.s3.does(s3Damages)
	w.fires(t, "RopewalkRunParked")
	s.s3.does(s3Well)
	s.live.wait(t).parked(t)
	s.live = h.start(t, "unpark", s.run, "--retry", "--json")
	w.clears(t, "RopewalkRunParked")

	phase("a weak sandbox, a failed device, a short retention")
	node := h.weakSandbox(t)
	w.aim(t, "sandbox", s.node.address, node.address)
	s.gpu.fail(t)
	s.retain(t, h, time.Hour)
	want := []string{"RopewalkSandboxTierLost", "RopewalkGPUUnhealthy", "RopewalkRetentionNear"}
	w.fires(t, want...)
	w.aim(t, "sandbox", s.node.address)
	node.end(t)
	s.gpu.reset(t)
	s.retain(t, h, 720*time.Hour)
	w.clears(t, want...)

	phase("the monitor ends")
	s.monitor.end(t)
	w.fires(t, "RopewalkMonitorDown")
	s.startMonitor(t, h)
	w.clears(t, "RopewalkMonitorDown")

	phase("the only worker is killed")
	w.tune(t, "vector(20)", "vector(3600)") // the run does not move, either; that alert would come first
	s.worker.signal(t, syscall.SIGKILL)
	s.worker.wait(t)
	w.fires(t, "RopewalkWorkerMissing")
	s.startWorker(t, h)
	w.clears(t, "RopewalkWorkerMissing")
	s.shown(t) // also what only faults bring about
	done := h.record().heads(s.run)
	eventually(t, func() bool { return h.record().heads(s.run) > done }, "the run to go on")
	h.run(t, "stop", s.run).ok(t)
	s.live.wait(t).ok(t)
	h.run(t, "verify", s.run).ok(t)
	s.monitor.end(t) // it holds the stack
}

// weakSandbox serves a sandbox below a changed root, where the kernel grants no user namespaces.
func (h *home) weakSandbox(t *testing.T) sandboxNode {
	t.Helper()
	dir, err := os.MkdirTemp("", "ropewalk-weak-")
	require.NoError(t, err)
	t.Cleanup(func() { // nothing is mounted on root outside the node, and still it is only removed if it is empty
		_ = os.RemoveAll(filepath.Join(dir, "tmp"))
		_ = os.Remove(filepath.Join(dir, "root"))
		_ = os.Remove(dir)
	})
	require.NoError(t, os.Chmod(dir, 0o755)) // calls run as another user
	for _, name := range []string{"root", "tmp"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o755))
	}
	weak := h.with("TMPDIR=" + filepath.Join(dir, "tmp"))
	weak.wrap = []string{"unshare", "--mount", "sh", "-c", `mount --rbind / "$0" && exec chroot "$0" "$@"`,
		filepath.Join(dir, "root")}
	return weak.serveSandbox(t, "--min-tier", "rlimits")
}

// scene is what the tower watches.
type scene struct {
	w                     *tower
	run                   string
	live, worker, monitor *command
	node                  sandboxNode
	s3                    *faultyS3
	gpu                   *simulatedHost
	complete              func() // asks the model server for a completion
	cell                  func() // runs a cell in the sandbox service
}

// watched starts a run, its worker, which reaches the store through a proxy, a monitor, a sandbox service, a
// model server and a host with a simulated device, all of which Prometheus reads.
func (h *home) watched(t *testing.T, w *tower) *scene {
	t.Helper()
	s := &scene{w: w, run: "watched", s3: newFaultyS3(t, h), gpu: newSimulatedHost(t)}
	s.startWorker(t, h)
	s.startMonitor(t, h)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte(sandboxSecret), 0o600))
	s.node = h.serveSandbox(t, "--token-file", token)
	boxes, err := client.Open(client.Options{Addresses: []string{s.node.address}, Token: sandboxSecret})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, boxes.Close()) })
	session := sync.OnceValues(func() (sandbox.Session, error) {
		return boxes.OpenSession(context.Background(), "", sandbox.Limits{})
	})
	s.cell = func() {
		one, err := session()
		require.NoError(t, err)
		_, err = one.Run(t.Context(), sandbox.Call{Code: "6 * 7"})
		require.NoError(t, err)
	}
	w.aim(t, "sandbox", s.node.address)
	w.aim(t, "gpu", s.gpu.URL)
	s.live = h.start(t, append(recipe(s.run), "--set", "steps=5000")...)
	eventually(t, func() bool { return h.record().heads(s.run) > 1 || !s.live.running() }, "the first steps")
	model := h.start(t, "serve", s.run+"@1", "--listen", "127.0.0.1:0", "--name", "policy")
	address := model.announces(t, regexp.MustCompile(`listening on http://([^/]+)/`))
	w.aim(t, "serve", address)
	s.complete = func() {
		post(t, "http://"+address+"/v1/completions", `{"prompt": "1 + 1 =", "max_tokens": 4, "temperature": 0}`, "")
	}
	return s
}

// post sends JSON, with a token unless it is "", requires success, and returns the answer.
func post(t *testing.T, address, body, token string) string {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader(body))
	require.NoError(t, err)
	r.Header.Set("Content-Type", "application/json")
	if token != "" {
		r.Header.Set("Authorization", "Bearer "+token)
	}
	answer, err := http.DefaultClient.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, 2, answer.StatusCode/100, "%s", text)
	return string(text)
}

// announces waits until a command prints a text, and returns the text's group.
func (c *command) announces(t *testing.T, text *regexp.Regexp) string {
	t.Helper()
	var found []string
	eventually(t, func() bool {
		found = text.FindStringSubmatch(c.out.String() + c.err.String())
		return found != nil || !c.running()
	}, "%v to announce its address", c.args)
	require.NotNil(t, found, c.err.String())
	return found[1]
}

var metricsAt = regexp.MustCompile(`metrics at (\S+)`)

func (s *scene) startWorker(t *testing.T, h *home) {
	t.Helper()
	servers := append(strings.Fields(h.run(t, "env").ok(t).out), "AWS_ENDPOINT_URL_S3="+s.s3.URL)
	s.worker = h.with(servers...).start(t, "worker", "--metrics-address", "127.0.0.1:0")
	s.w.aim(t, "worker", s.worker.announces(t, metricsAt))
}

// sandboxSecret is the token of the sandbox service's clients.
const sandboxSecret = "token-of-the-sandbox-service"

func (s *scene) startMonitor(t *testing.T, h *home) {
	t.Helper()
	s.monitor = h.start(t, "monitor", "--metrics-address", "127.0.0.1:0", "--every", "1s")
	s.w.aim(t, "monitor", s.monitor.announces(t, metricsAt))
}

// panels requires that every query of every dashboard has data.
func (s *scene) panels(t *testing.T) {
	for _, d := range dashboards(t) {
		for _, p := range d.Panels {
			for _, q := range p.Targets {
				expr := asked(q.Expr, s.run)
				eventually(t, func() bool {
					switch { // a rate needs requests between two scrapes
					case strings.Contains(expr, "ropewalk_serve_"):
						s.complete()
					case strings.Contains(expr, "ropewalk_sandbox_cell"):
						s.cell()
					}
					return s.w.samples(t, expr) > 0
				}, "%s, %s to have data: %s", d.Title, p.Title, expr)
			}
		}
	}
}

// shown requires that every metric of the program that Prometheus has is in a panel, or that a reason is written down.
func (s *scene) shown(t *testing.T) {
	t.Helper()
	data, err := s.w.get("label/__name__/values", nil)
	require.NoError(t, err)
	names, shown := metricsIn(string(data)), shownMetrics(t)
	require.NotEmpty(t, names)
	for _, name := range names {
		require.True(t, slices.Contains(shown, name) || unshown[name] != "", "no panel of a dashboard shows %s", name)
	}
}

// retain sets how long Temporal keeps closed workflows.
func (s *scene) retain(t *testing.T, h *home, kept time.Duration) {
	t.Helper()
	_, err := h.dial(t).WorkflowService().UpdateNamespace(t.Context(), &workflowservice.UpdateNamespaceRequest{
		Namespace: "ropewalk",
		Config:    &namespacepb.NamespaceConfig{WorkflowExecutionRetentionTtl: durationpb.New(kept)},
	})
	require.NoError(t, err)
}

// What an S3 server does with a request.
const (
	s3Well      = iota
	s3Sometimes // answers a third of the requests with 503
	s3Holds     // answers when it is well again
	s3Damages   // changes a byte of what has been generated
)

// faultyS3 passes requests to the stack's S3 server.
type faultyS3 struct {
	*httptest.Server
	mode atomic.Int32
	well atomic.Pointer[chan struct{}] // closed when s3Holds ends
}

func newFaultyS3(t *testing.T, h *home) *faultyS3 {
	t.Helper()
	address := regexp.MustCompile(`AWS_ENDPOINT_URL_S3=(\S+)`).FindStringSubmatch(h.run(t, "env").ok(t).out)
	require.NotNil(t, address)
	to, err := url.Parse(address[1])
	require.NoError(t, err)
	f := &faultyS3{}
	f.does(s3Well)
	proxy := httputil.NewSingleHostReverseProxy(to) // the host's name is signed, and stays
	proxy.ModifyResponse = f.damage
	f.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch f.mode.Load() {
		case s3Sometimes:
			if rand.IntN(3) == 0 {
				w.WriteHeader(http.StatusServiceUnavailable)
				return
			}
		case s3Holds:
			select {
			case <-*f.well.Load():
			case <-r.Context().Done():
				return
			}
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(func() { f.does(s3Well); f.Close() })
	return f
}

func (f *faultyS3) does(mode int32) {
	if mode == s3Holds {
		f.well.Store(new(make(chan struct{})))
	} else if f.mode.Load() == s3Holds {
		close(*f.well.Load())
	}
	f.mode.Store(mode)
}

// damage changes the last byte of a shard of turns.
func (f *faultyS3) damage(r *http.Response) error {
	if f.mode.Load() != s3Damages || r.Request.Method != http.MethodGet || r.StatusCode != http.StatusOK ||
		!strings.Contains(r.Request.URL.Path, "/table="+string(schema.Turns)+"/") {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil || len(body) == 0 {
		return err
	}
	body[len(body)-1] ^= 1
	r.Body = io.NopCloser(bytes.NewReader(body))
	return nil
}

// simulatedHost serves the metrics of a host whose driver is simulated: those of its devices, and those of a worker
// whose engine measures what it uses.
type simulatedHost struct {
	*httptest.Server
	lib   *devicetest.Library
	watch atomic.Pointer[device.Watch]
	pool  atomic.Pointer[lease.Pool]
	serve atomic.Pointer[http.Handler]
}

func newSimulatedHost(t *testing.T) *simulatedHost {
	t.Helper()
	s := &simulatedHost{}
	s.reset(t)
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		(*s.serve.Load()).ServeHTTP(w, r)
	}))
	t.Cleanup(func() {
		s.Close()
		_ = s.pool.Load().Close()
		_ = s.watch.Load().Close()
	})
	return s
}

// reset starts over, as after a reset of the devices and a restart.
func (s *simulatedHost) reset(t *testing.T) {
	t.Helper()
	s.lib = devicetest.New(&devicetest.GPU{Switches: 18})
	host, err := device.Open(device.Options{Library: s.lib})
	require.NoError(t, err)
	watch, err := host.Watch(device.WatchOptions{Clock: devicetest.NewClock(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	pool, err := lease.Open(watch, lease.Options{Dir: t.TempDir(), Log: slog.New(slog.DiscardHandler)})
	require.NoError(t, err)
	p := metrics.New("worker", strconv.Itoa(os.Getpid()), "test")
	require.NoError(t, p.Register(inventory.NewCollector(watch, pool)))
	p.Stages().Begin(schema.StageUpdate, 1)
	p.Stages().End(api.Timing{Stage: schema.StageUpdate, Device: &api.DeviceUse{PeakBytes: 70 << 30, MFU: new(0.4),
		Utilisation: new(0.8), TokensPerSec: new(9000.0)}}, "")
	if before := s.pool.Swap(pool); before != nil {
		require.NoError(t, before.Close())
	}
	if before := s.watch.Swap(watch); before != nil {
		require.NoError(t, before.Close())
	}
	s.lib.Xid(0, 13) // a fault of a program, which says nothing about the device
	require.NoError(t, watch.Poll(t.Context()))
	handler := p.Handler()
	s.serve.Store(&handler)
}

// fail has the device fall off the bus.
func (s *simulatedHost) fail(t *testing.T) {
	t.Helper()
	s.lib.Xid(0, 79)
	require.NoError(t, s.watch.Load().Poll(t.Context()))
}
