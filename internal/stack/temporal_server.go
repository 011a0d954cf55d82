package stack

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/temporalconf"
	"go.temporal.io/sdk/client"
)

// temporalServer runs Temporal's development server and web UI.
type temporalServer struct {
	*supervisor
	front port
	guard *webGuard

	inner         innerUI // of the process that was started last
	http, metrics int     // ports of that process that no one needs
	fenced        int     // id of the process whose ports are closed, or cannot be
}

func (t *temporalServer) command() (*exec.Cmd, error) {
	bin, err := FindTool("temporal")
	if err != nil {
		return nil, err
	}
	if err := t.files.checkDatabase(); err != nil {
		return nil, err
	}
	if err := t.choosePorts(); err != nil {
		return nil, err
	}
	args := []string{"server", "start-dev", "--db-filename", t.files.database(), "--ip", loopbackIP,
		"--port", strconv.Itoa(t.front.got), "--ui-ip", t.inner.host, "--ui-port", strconv.Itoa(t.inner.port),
		"--http-port", strconv.Itoa(t.http), "--metrics-port", strconv.Itoa(t.metrics),
		// Its HTTP API answers every web page otherwise. Nothing of ours uses it, nor Nexus, which has paths of its own
		// there.
		"--dynamic-config-value", `frontend.httpAllowedHosts=["` + rand.Text() + `.invalid"]`,
		"--dynamic-config-value", "system.enableNexus=false",
		"--namespace", t.Options.Temporal.Namespace, "--log-level", "warn",
		// The write-ahead log is synced at checkpoints only: a step syncs the disk a few times instead of some hundred
		// times. A loss of power may cost Temporal's last events, never its consistency. A run continues from the
		// record in the object store.
		"--sqlite-pragma", "journal_mode=WAL", "--sqlite-pragma", "synchronous=NORMAL",
		// The user's configuration of Temporal clients does not apply to this server.
		"--disable-config-file", "--disable-config-env"}
	for _, f := range t.Options.Temporal.SearchAttributeFlags() {
		args = append(args, "--search-attribute", f)
	}
	conf, err := t.withFairness()
	if err != nil {
		return nil, err
	}
	for _, f := range conf.DynamicConfigFlags() {
		args = append(args, "--dynamic-config-value", f)
	}
	cmd := exec.Command(bin, args...)
	// Its heap is small and full of short-lived objects. If it is collected a quarter as often, an activity takes a
	// fifth less time.
	cmd.Env = append([]string{"GOGC=400"}, append(plainEnv(), "TEMPORAL_VERSION_CHECK_DISABLED=1", noMultipath)...)
	return cmd, nil
}

// choosePorts chooses the ports of the next process.
func (t *temporalServer) choosePorts() (err error) {
	if err := t.front.choose(t.say); err != nil {
		return err
	}
	if t.inner, err = newInnerUI(); err != nil {
		return err
	}
	if t.http, err = freePort(loopbackIP); err != nil {
		return err
	}
	t.metrics, err = freePort(loopbackIP)
	return err
}

// fence closes the ports of a process that answer anyone, once they are open. Some containers do not permit it: then
// the addresses, which web pages cannot guess, and the settings of the process protect them.
func (t *temporalServer) fence(p *process) error {
	if t.fenced == p.pid() {
		return nil
	}
	err := errors.Join(fence(p.pid(), t.inner.port, t.inner.from), fence(p.pid(), t.http, nil),
		fence(p.pid(), t.metrics, nil))
	if errors.Is(err, errNotListening) {
		return err
	}
	if err != nil {
		slog.Warn("Temporal's inner ports have no filter", "error", err)
	}
	t.fenced = p.pid()
	inner := t.inner
	t.guard.inner.Store(&inner)
	return nil
}

// fairness is Temporal's setting for fairness in task queues, which keep their tasks in another table then.
const fairness = "matching.enableFairness"

// withFairness returns the configuration for the database as it was made. A server with fairness does not look at the
// tasks that one without it has kept, and the other way round: open runs would wait for them for ever.
func (t *temporalServer) withFairness() (temporalconf.Config, error) {
	conf := *t.Options.Temporal
	wanted := conf.DynamicConfig[fairness] == true
	_, err := os.Stat(t.files.database())
	switch {
	case errors.Is(err, fs.ErrNotExist) && wanted:
		return conf, writeFile(t.files.fair(), []byte("Temporal's task queues in temporal.db have fairness.\n"))
	case errors.Is(err, fs.ErrNotExist):
		err = os.Remove(t.files.fair())
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return conf, err
	case err != nil:
		return conf, fmt.Errorf("look at Temporal's database: %w", err)
	}
	_, err = os.Stat(t.files.fair())
	made := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return conf, fmt.Errorf("look up how Temporal's database was made: %w", err)
	}
	if made != wanted {
		slog.Debug("the database keeps the fairness that it was made with", "database", t.files.database(),
			"fairness", made)
		conf.DynamicConfig = maps.Clone(conf.DynamicConfig)
		conf.DynamicConfig[fairness] = made
	}
	return conf, nil
}

// probe succeeds when the frontend answers, the namespace is as temporal.yaml says and the UI answers.
func (t *temporalServer) probe(ctx context.Context, p *process) error {
	if err := t.front.listening(p); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	n := namespace{name: t.Addresses.Namespace, conf: *t.Options.Temporal, at: t.front.address(), own: true, say: t.say}
	if err := n.prepareAt(ctx, client.Options{HostPort: n.at, Namespace: n.name}); err != nil {
		return err
	}
	// Not before the frontend answers: first of all, the server opens its ports for a moment to see that they are free.
	if err := t.fence(p); err != nil {
		return err
	}
	if err := httpAnswer(ctx, t.url()); err != nil {
		return fmt.Errorf("get %s: %w", t.url(), err)
	}
	return nil
}

func (t *temporalServer) url() string { return t.guard.url() }

// plainEnv returns the environment of the servers, without variables that would change their configuration.
func plainEnv() []string {
	var env []string
	for _, kv := range os.Environ() {
		switch key, _, _ := strings.Cut(kv, "="); key {
		case "PATH", "HOME", "USER", "TMPDIR", "TZ", "LANG", "GOMAXPROCS", "GOMEMLIMIT", "GOGC":
			env = append(env, kv)
		}
	}
	return env
}
