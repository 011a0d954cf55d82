package e2e

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/workflows"
)

// home is one ROPEWALK_HOME and the environment of its commands.
type home struct {
	dir string // the state folder
	cwd string // where commands run: holds no temporal.yaml and no .tools
	tmp string // their TMPDIR
	env []string
	// program is the command that is run; empty: the one under test.
	program string
	// wrap is a prefix of the commands' lines, if they have one.
	wrap []string
	up   *command // `ropewalk up`, if it runs
	// namespace and objects are those of a home on the shared servers: Temporal's namespace, and the folder of its
	// bucket. They are empty for a home whose stack starts its own servers.
	namespace, objects string
}

// newHome makes a home below dir. Of the caller's environment it keeps what programs need to run
// and nothing that selects servers.
func newHome(t *testing.T, dir string, env ...string) *home {
	t.Helper()
	path := strings.Join(append(needServers(t), os.Getenv("PATH")), string(os.PathListSeparator))
	h := &home{dir: filepath.Join(dir, "home"), cwd: filepath.Join(dir, "cwd"), tmp: filepath.Join(dir, "tmp")}
	require.NoError(t, os.MkdirAll(h.cwd, 0o755))
	require.NoError(t, os.MkdirAll(h.tmp, 0o755))
	h.env = []string{"PATH=" + path, "HOME=" + h.cwd, "ROPEWALK_HOME=" + h.dir, "TMPDIR=" + h.tmp}
	for _, name := range []string{"PYENV_ROOT", "PYENV_VERSION", "LD_LIBRARY_PATH", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			h.env = append(h.env, name+"="+v)
		}
	}
	if os.Getenv("PYENV_ROOT") == "" { // its shims look below HOME
		h.env = append(h.env, "PYENV_ROOT="+filepath.Join(os.Getenv("HOME"), ".pyenv"))
	}
	h.env = append(h.env, env...)
	return h
}

// with returns a home with the same folders and additional environment variables.
func (h *home) with(env ...string) *home {
	other := *h
	other.env = append(append([]string(nil), h.env...), env...)
	other.up = nil
	return &other
}

// ensureUp has `ropewalk up` run until the test ends, or in the shared home until all tests have ended.
func (h *home) ensureUp(t *testing.T) {
	t.Helper()
	if h.up != nil && h.up.running() {
		return
	}
	h.up = h.start(t, "up")
	h.up.says(t, "the stack stays up")
	if h != shared.home {
		t.Cleanup(func() { h.ensureDown(t) })
	}
}

func (h *home) ensureDown(t *testing.T) {
	t.Helper()
	if h.up == nil {
		return
	}
	h.up.signal(t, syscall.SIGINT)
	require.Equal(t, 0, h.up.wait(t).code, "up ends well on Ctrl-C")
	h.up = nil
	h.ended(t)
}

// ended waits for the end of the stack.
func (h *home) ended(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return !h.runs() }, "the stack to end")
}

// runs reports whether the home has a stack.
func (h *home) runs() bool {
	_, err := stack.Running(stack.Options{Root: h.dir})
	return !errors.Is(err, stack.ErrNotRunning)
}

// stop ends the stack at the end of all tests.
func (h *home) stop() {
	if h.up != nil {
		_ = h.up.cmd.Process.Signal(syscall.SIGTERM)
		select {
		case <-h.up.ended:
		case <-time.After(30 * time.Second):
			_ = h.up.cmd.Process.Kill()
		}
	}
}

// report has the fields of `run --json` that the tests read.
type report struct {
	Run    string `json:"run_id"`
	Digest string `json:"checkpoint_digest"`
	Steps  int    `json:"steps"`
}

// recipe returns the arguments of a run of the tiny recipe.
func recipe(run string, more ...string) []string {
	return append([]string{"run", tiny(), "--json", "--run-id", run}, more...)
}

// train runs the tiny recipe to its end.
func (h *home) train(t *testing.T, run string, more ...string) report {
	t.Helper()
	return h.run(t, recipe(run, more...)...).ok(t).report(t)
}

func (r result) report(t *testing.T) report {
	t.Helper()
	var out report
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), "%s", r.out)
	return out
}

// parkedReport has the fields of a parked run's JSON that the tests read.
type parkedReport struct {
	Run    string            `json:"run_id"`
	Status string            `json:"status"`
	Step   int               `json:"step"`
	Parked *workflows.Parked `json:"parked"`
}

// parked requires that a command ended because its run waits for a person.
func (r result) parked(t *testing.T) parkedReport {
	t.Helper()
	require.Equal(t, 3, r.code, "%v: %s", r.args, r.err)
	var out parkedReport
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), "%s", r.out)
	require.Equal(t, "parked", out.Status)
	require.NotNil(t, out.Parked)
	require.NotEmpty(t, out.Parked.Failures)
	return out
}

// state is what the supervisors tell about the running stack.
type state struct {
	Supervisors map[string]int // by the names of their servers
	Parts       map[string]int // the servers
	Addresses   struct {
		Temporal  string `json:"temporal"`
		UI        string `json:"ui"`
		Namespace string `json:"namespace"`
	}
}

func (h *home) state(t *testing.T) state {
	t.Helper()
	s := state{Supervisors: map[string]int{}, Parts: map[string]int{}}
	for _, name := range []string{"s3", "worker", "temporal"} { // the worker may use a Temporal that is not ours
		text, err := os.ReadFile(filepath.Join(h.dir, "servers", name+".json"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		require.NoError(t, err)
		var one struct {
			PID       int `json:"pid"`
			Server    int `json:"server"`
			Addresses any `json:"addresses"`
		}
		one.Addresses = &s.Addresses
		require.NoError(t, json.Unmarshal(text, &one))
		s.Supervisors[name], s.Parts[name] = one.PID, one.Server
	}
	return s
}
