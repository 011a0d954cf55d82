package e2e

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// Prometheus and Alertmanager, by the names that they have on PATH.
var monitoringPrograms = map[string][]string{
	"prometheus": {"prometheus"}, "promtool": {"promtool"}, "alertmanager": {"alertmanager", "prometheus-alertmanager"},
	"amtool": {"amtool"},
}

// needPrometheus returns the path of a program, or skips the test; with ROPEWALK_REQUIRE_PROMETHEUS it fails it.
func needPrometheus(t *testing.T, program string) string {
	t.Helper()
	for _, name := range monitoringPrograms[program] {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	text := program + " is not on PATH (Debian: apt-get install prometheus prometheus-alertmanager)"
	if os.Getenv("ROPEWALK_REQUIRE_PROMETHEUS") != "" {
		t.Fatalf("ROPEWALK_REQUIRE_PROMETHEUS is set, and %s", text)
	}
	t.Skip(text)
	return ""
}

// monitoring is the folder of the files that are tested.
func monitoring() string { return filepath.Join(root(), "deploy", "monitoring") }

// The alerts' files are valid, and each alert fires and ends as its unit test says.
func TestMonitoringFiles(t *testing.T) {
	promtool, amtool := needPrometheus(t, "promtool"), needPrometheus(t, "amtool")
	for _, line := range [][]string{
		{promtool, "check", "config", "prometheus.yml"},
		{promtool, "check", "rules", "--lint-fatal", "thresholds.yml", "alerts.yml"},
		{promtool, "test", "rules", "alerts_test.yml"},
		{amtool, "check-config", "alertmanager.yml"},
	} {
		cmd := exec.Command(line[0], line[1:]...)
		cmd.Dir = monitoring()
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v\n%s", line, out)
	}
	alerts, err := os.ReadFile(filepath.Join(monitoring(), "alerts.yml"))
	require.NoError(t, err)
	tests, err := os.ReadFile(filepath.Join(monitoring(), "alerts_test.yml"))
	require.NoError(t, err)
	for _, name := range alertNames(t, string(alerts)) {
		require.Contains(t, string(tests), "alertname: "+name+"\n        exp_alerts:", "the unit test of %s", name)
	}
}

func alertNames(t *testing.T, text string) (names []string) {
	t.Helper()
	for _, found := range regexp.MustCompile(`- alert: (\w+)`).FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	require.NotEmpty(t, names)
	return names
}

// shorter is by how much the live test divides the times of the alerts.
const shorter = 20

// times matches the durations that the live test divides.
var times = regexp.MustCompile(`((?:for|group_wait|group_interval): |\[)(\d+)([sm])`)

// hasten divides the durations in the text of a file.
func hasten(text string) string {
	return times.ReplaceAllStringFunc(text, func(found string) string {
		part := times.FindStringSubmatch(found)
		n, err := strconv.Atoi(part[2])
		if err != nil {
			panic(err) // the expression matches digits alone
		}
		if part[3] == "m" {
			n *= 60
		}
		return fmt.Sprintf("%s%ds", part[1], max(1, n/shorter))
	})
}

// tower is a real Prometheus with a real Alertmanager, whose notifications the test receives.
type tower struct {
	dir, api string
	server   *exec.Cmd // Prometheus
	begin    func()    // starts both
	mu       sync.Mutex
	firing   map[string]string // alert's name, by all its labels
	told     []string          // names of all alerts that have fired since the last look
}

// newTower prepares them with the files of deploy/monitoring, whose times are divided. thresholds replaces numbers of
// thresholds.yml.
func newTower(t *testing.T, thresholds map[string]string) *tower {
	t.Helper()
	prometheus, alertmanager := needPrometheus(t, "prometheus"), needPrometheus(t, "alertmanager")
	w := &tower{dir: t.TempDir(), firing: map[string]string{}}
	hook := httptest.NewServer(http.HandlerFunc(w.receive))
	t.Cleanup(hook.Close)
	am, web := freeAddress(t), freeAddress(t)
	w.api = "http://" + web + "/api/v1/"
	require.NoError(t, os.MkdirAll(filepath.Join(w.dir, "targets"), 0o755))
	replace := func(name string, pairs ...string) {
		text, err := os.ReadFile(filepath.Join(monitoring(), name))
		require.NoError(t, err)
		out := hasten(string(text))
		for i := 0; i < len(pairs); i += 2 {
			require.Contains(t, out, pairs[i], name)
			out = strings.ReplaceAll(out, pairs[i], pairs[i+1])
		}
		require.NoError(t, os.WriteFile(filepath.Join(w.dir, name), []byte(out), 0o600))
	}
	replace("alerts.yml")
	replace("alertmanager.yml", "http://127.0.0.1:9095/", hook.URL)
	const token = "authorization: {credentials_file: sandbox-token}"
	replace("prometheus.yml", "127.0.0.1:9093", am, "_interval: 15s", "_interval: 2s", "# "+token, token)
	require.NoError(t, os.WriteFile(filepath.Join(w.dir, "sandbox-token"), []byte(sandboxSecret), 0o600))
	var pairs []string
	for from, to := range thresholds {
		pairs = append(pairs, "vector("+from+")", "vector("+to+")")
	}
	replace("thresholds.yml", pairs...)
	w.begin = func() {
		w.start(t, alertmanager, "--config.file=alertmanager.yml", "--storage.path=alertmanager",
			"--web.listen-address="+am, "--cluster.listen-address=")
		w.server = w.start(t, prometheus, "--config.file=prometheus.yml", "--storage.tsdb.path=prometheus",
			"--web.listen-address="+web)
		eventually(t, func() bool {
			r, err := http.Get("http://" + web + "/-/ready")
			return err == nil && r.Body.Close() == nil && r.StatusCode == http.StatusOK
		}, "Prometheus to be ready")
	}
	return w
}

// freeAddress is an address on which nothing listens at the moment.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

func (w *tower) start(t *testing.T, program string, flags ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(program, flags...)
	var out transcript.Transcript
	cmd.Dir, cmd.Stdout, cmd.Stderr = w.dir, &out, &out
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("%s said:\n%s", program, out.String())
		}
	})
	return cmd
}

// tune changes a threshold.
func (w *tower) tune(t *testing.T, from, to string) {
	t.Helper()
	path := filepath.Join(w.dir, "thresholds.yml")
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from)
	require.NoError(t, os.WriteFile(path, []byte(strings.ReplaceAll(string(text), from, to)), 0o600))
	require.NoError(t, w.server.Process.Signal(syscall.SIGHUP))
	eventually(t, func() bool {
		data, err := w.get("rules", nil)
		return err == nil && strings.Contains(string(data), to)
	}, "Prometheus to read the threshold")
}

// notification is what Alertmanager sends to a web hook.
type notification struct {
	Alerts []struct {
		Status string            `json:"status"`
		Labels map[string]string `json:"labels"`
	} `json:"alerts"`
}

func (w *tower) receive(_ http.ResponseWriter, r *http.Request) {
	var n notification
	if json.NewDecoder(r.Body).Decode(&n) != nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, a := range n.Alerts {
		key, name := fmt.Sprint(a.Labels), a.Labels["alertname"]
		if a.Status == "resolved" {
			delete(w.firing, key)
			continue
		}
		w.firing[key] = name
		w.told = append(w.told, name)
	}
}

// now returns the names of the alerts that fire.
func (w *tower) now() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	names := []string{}
	for _, name := range w.firing {
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// fires waits until exactly these alerts fire.
func (w *tower) fires(t *testing.T, want ...string) {
	t.Helper()
	slices.Sort(want)
	w.until(t, func() bool { return slices.Equal(w.now(), want) }, want)
}

// clears waits until no alert fires, and requires that these alerts, and no others, have fired since the last look.
func (w *tower) clears(t *testing.T, fired ...string) {
	t.Helper()
	w.until(t, func() bool { return len(w.now()) == 0 }, nil)
	w.mu.Lock()
	defer w.mu.Unlock()
	slices.Sort(w.told)
	slices.Sort(fired)
	require.Equal(t, fired, slices.Compact(w.told), "the alerts that have fired")
	w.told = nil
}

func (w *tower) until(t *testing.T, done func() bool, want []string) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(50 * time.Millisecond) {
		if time.Now().After(end) {
			text, err := w.get("alerts", nil)
			t.Fatalf("waited %s for the alerts %v; %v fire; Prometheus says (%v): %s", patience, want, w.now(), err,
				text)
		}
	}
}

func (w *tower) get(path string, parameters url.Values) (json.RawMessage, error) {
	r, err := http.Get(w.api + path + "?" + parameters.Encode())
	if err != nil {
		return nil, err
	}
	defer r.Body.Close()
	var answer struct {
		Status, Error string
		Data          json.RawMessage
	}
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil {
		return nil, err
	}
	if answer.Status != "success" {
		return nil, fmt.Errorf("%s: %s", answer.Status, answer.Error)
	}
	return answer.Data, nil
}

// samples returns how many numbers a query has now. NaN is none.
func (w *tower) samples(t *testing.T, expr string) int {
	t.Helper()
	data, err := w.get("query", url.Values{"query": {expr}})
	require.NoError(t, err, expr)
	var answer struct {
		Result []struct {
			Value [2]any
		}
	}
	require.NoError(t, json.Unmarshal(data, &answer), expr)
	n := 0
	for _, r := range answer.Result {
		if r.Value[1] != "NaN" {
			n++
		}
	}
	return n
}

// aim writes the targets of a kind of process: addresses or URLs.
func (w *tower) aim(t *testing.T, kind string, at ...string) {
	t.Helper()
	targets := []string{}
	for _, address := range at {
		address = strings.TrimPrefix(address, "http://")
		targets = append(targets, strings.TrimSuffix(address, "/metrics"))
	}
	text, err := json.Marshal([]map[string]any{{"targets": targets}})
	require.NoError(t, err)
	path := filepath.Join(w.dir, "targets", kind+".json")
	require.NoError(t, os.WriteFile(path+".new", text, 0o600))
	require.NoError(t, os.Rename(path+".new", path))
}
