package stack

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/api/operatorservice/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"golang.org/x/sync/errgroup"
)

// needServers skips a test where the server programs are not installed, unless they must be.
func needServers(t *testing.T) {
	t.Helper()
	for _, tool := range []string{"temporal", "versitygw"} {
		if _, err := FindTool(tool); err != nil {
			if os.Getenv("ROPEWALK_REQUIRE_SERVERS") != "" {
				t.Fatal(err)
			}
			t.Skip(err)
		}
	}
	forgetServers(t)
}

// forgetServers removes the variables that select other servers from the environment.
func forgetServers(t *testing.T) {
	t.Helper()
	for _, name := range []string{"TEMPORAL_ADDRESS", "TEMPORAL_NAMESPACE", "TEMPORAL_PROFILE", "AWS_ENDPOINT_URL",
		"AWS_ENDPOINT_URL_S3", "ROPEWALK_NO_WORKER", "ROPEWALK_S3_BUCKET"} {
		t.Setenv(name, "") // restores it at the end
		require.NoError(t, os.Unsetenv(name))
	}
	t.Setenv("TEMPORAL_CONFIG_FILE", filepath.Join(t.TempDir(), "none.toml"))
}

// lines collects progress.
type lines struct {
	mu  sync.Mutex
	all []string
}

func (l *lines) add(s string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all = append(l.all, s)
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Join(l.all, "\n")
}

// join joins a stack in root, with free ports, and leaves it at the end of the test.
func join(t *testing.T, root string, change func(*Options)) (*Lease, *lines) {
	t.Helper()
	o, got := freePorts(t, testOptions(root)), &lines{}
	o.Progress = got.add
	if change != nil {
		change(&o)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	l, err := Join(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, l.Close()) })
	return l, got
}

// freePorts replaces the default ports: other stacks of this machine may use them.
func freePorts(t *testing.T, o Options) Options {
	t.Helper()
	for _, p := range []*int{&o.Ports.Temporal, &o.Ports.UI, &o.Ports.S3} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		require.NoError(t, err)
		defer l.Close()
		*p = l.Addr().(*net.TCPAddr).Port
	}
	return o
}

func currentState(t *testing.T, root string) state {
	t.Helper()
	s, err := layout{root}.readState()
	require.NoError(t, err)
	return s
}

func alive(pid int) bool {
	stat, err := os.ReadFile(procFile(pid, "stat"))
	return err == nil && !strings.Contains(string(stat), ") Z ") // a zombie has ended
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	require.Eventually(t, ok, 5*time.Minute, 20*time.Millisecond, what)
}

func readInt(t *testing.T, path string) int {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(string(text)))
	require.NoError(t, err)
	return n
}

func statusOf(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	require.NoError(t, err)
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	require.NoError(t, err)
	return resp.StatusCode
}

// The whole life of a stack: it starts, is shared, a server is killed and restarted, the last command to leave ends
// everything, and Temporal's state is there the next time.
func TestLife(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	first, progress := join(t, root, nil)
	a := first.Addresses()
	checkNamespace(t, a)
	require.Equal(t, 200, statusOf(t, a.UI))
	require.Equal(t, 403, statusOf(t, a.S3Endpoint), "no anonymous access")
	require.DirExists(t, filepath.Join(a.S3Folder, a.S3Bucket))
	checkWorkerEnv(t, root, a)
	checkSecrecy(t, root, a)
	for _, want := range []string{"starting Temporal…", "Temporal is ready at " + a.Temporal, "S3 is ready at",
		"the worker is ready"} {
		require.Contains(t, progress.text(), want)
	}
	peak, err := first.PeakMB(context.Background(), true)
	require.NoError(t, err)
	require.Greater(t, peak, 30.0, "three servers take that much")
	require.Less(t, peak, 4096.0)

	before := currentState(t, root)
	second, _ := join(t, root, nil)
	require.Equal(t, a, second.Addresses(), "the second command shares the stack")
	require.True(t, first.Stays(context.Background()), "the second command holds it")
	require.Equal(t, before, currentState(t, root), "and starts nothing")

	killAndWatch(t, root, partTemporal, progress, "Temporal died (signal: killed): starting it again")
	checkNamespace(t, a)
	child := readInt(t, filepath.Join(root, "worker.child"))
	killAndWatch(t, root, partWorker, progress, "the worker died (signal: killed): starting it again")
	eventually(t, "the killed worker's child in another session has ended", func() bool { return !alive(child) })

	pids := everyProcess(t, root)
	require.NoError(t, first.Close())
	for _, pid := range pids {
		require.True(t, alive(pid), "a stack in use is not stopped")
	}
	require.NoError(t, second.Err())
	eventually(t, "the second command is the last one", func() bool { return !second.Stays(context.Background()) })
	require.NoError(t, second.Close())
	for _, pid := range pids[1:] {
		require.False(t, alive(pid), "Close of the last lease waits for the end")
	}
	eventually(t, "the supervisor has ended", func() bool { return !alive(pids[0]) })
	require.NoFileExists(t, filepath.Join(root, "stack.sock"))
	require.NoFileExists(t, filepath.Join(root, "stack.json"))

	third, _ := join(t, root, func(o *Options) { o.Need = Need{Temporal: true} })
	require.Equal(t, a.Namespace, third.Addresses().Namespace)
	require.NotContains(t, currentState(t, root).Parts, partWorker, "nothing is started that is not needed")
	checkNamespace(t, third.Addresses())
}

// killAndWatch kills a part and waits until it is healthy again, on its old address.
func killAndWatch(t *testing.T, root, name string, progress *lines, want string) {
	t.Helper()
	old := currentState(t, root)
	require.NoError(t, syscall.Kill(old.Parts[name], syscall.SIGKILL))
	eventually(t, name+" is restarted", func() bool {
		now, err := layout{root}.readState()
		return err == nil && now.Parts[name] != 0 && now.Parts[name] != old.Parts[name]
	})
	require.Contains(t, progress.text(), want)
	require.Equal(t, old.Addresses, currentState(t, root).Addresses)
}

// everyProcess lists the supervisor, the parts and the worker's child.
func everyProcess(t *testing.T, root string) []int {
	s := currentState(t, root)
	pids := []int{s.PID, readInt(t, filepath.Join(root, "worker.child"))}
	for _, pid := range s.Parts {
		pids = append(pids, pid)
	}
	require.Len(t, pids, 5)
	for _, pid := range pids {
		require.True(t, alive(pid))
	}
	return pids
}

func checkNamespace(t *testing.T, a Addresses) {
	t.Helper()
	opts, err := a.ClientOptions()
	require.NoError(t, err)
	c, err := client.Dial(opts)
	require.NoError(t, err)
	defer c.Close()
	ctx := context.Background()
	ns, err := c.WorkflowService().DescribeNamespace(ctx,
		&workflowservice.DescribeNamespaceRequest{Namespace: a.Namespace})
	require.NoError(t, err)
	require.Equal(t, 720*time.Hour, ns.Config.WorkflowExecutionRetentionTtl.AsDuration())
	sa, err := c.OperatorService().ListSearchAttributes(ctx,
		&operatorservice.ListSearchAttributesRequest{Namespace: a.Namespace})
	require.NoError(t, err)
	for name, kind := range map[string]string{"RunID": "Keyword", "Stage": "Keyword", "FailureKind": "Keyword",
		"Step": "Int", "RunState": "Keyword", "Success": "Double", "RunStarted": "Datetime"} {
		require.Equal(t, kind, sa.CustomAttributes[name].String(), name)
	}
}

func checkWorkerEnv(t *testing.T, root string, a Addresses) {
	t.Helper()
	env, err := os.ReadFile(filepath.Join(root, "worker.env"))
	require.NoError(t, err)
	for _, kv := range a.Env() {
		require.Contains(t, string(env)+"\n", kv+"\n")
	}
	require.NotContains(t, string(env), optionsVariable)
}

// checkSecrecy looks for the secret key in every file except the one that holds it.
func checkSecrecy(t *testing.T, root string, a Addresses) {
	t.Helper()
	require.NotEmpty(t, a.SecretKey)
	keeper := layout{root}.credentials()
	fi, err := os.Stat(keeper)
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), fi.Mode().Perm())
	require.NoError(t, filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() || path == keeper || d.Name() == "worker.env" {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), a.SecretKey, path)
		return err
	}))
	require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", a, a, a, a), a.SecretKey)
}

// Taken ports are replaced, with a notice. A root that is too deep for a socket works.
func TestTakenPortsAndDeepRoot(t *testing.T) {
	needServers(t)
	root := filepath.Join(t.TempDir(), strings.Repeat("deep/", 20))
	var ports []string
	l, progress := join(t, root, func(o *Options) {
		o.Need = Need{Temporal: true, S3: true}
		for _, p := range []int{o.Ports.Temporal, o.Ports.UI, o.Ports.S3} {
			taken, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", p))
			require.NoError(t, err)
			t.Cleanup(func() { taken.Close() })
			ports = append(ports, strconv.Itoa(p))
		}
	})
	a := l.Addresses()
	for i, use := range []string{"Temporal", "Temporal's web UI", "S3"} {
		require.Contains(t, progress.text(), "port "+ports[i]+" is taken: "+use+" listens on")
		require.NotContains(t, a.Temporal+a.UI+a.S3Endpoint, ":"+ports[i])
	}
	checkNamespace(t, a)
	require.Less(t, len(currentState(t, root).Socket), 108)
}

// Stacks that start at the same time with the same preferred ports get different ports; none takes another's server for
// its own.
func TestStacksStartedAtOnce(t *testing.T) {
	needServers(t)
	first := freePorts(t, testOptions(t.TempDir()))
	var g errgroup.Group
	leases := make([]*Lease, 3)
	for i := range leases {
		o := testOptions(t.TempDir())
		o.Ports, o.Need = first.Ports, Need{Temporal: true, S3: true}
		g.Go(func() (err error) { leases[i], err = Join(context.Background(), o); return err })
	}
	err := g.Wait()
	used := map[string]bool{}
	for _, l := range leases {
		if l != nil {
			t.Cleanup(func() { require.NoError(t, l.Close()) })
			used[l.Addresses().Temporal], used[l.Addresses().UI], used[l.Addresses().S3Endpoint] = true, true, true
		}
	}
	require.NoError(t, err)
	require.Len(t, used, 3*len(leases))
}

// The children of a killed supervisor end with it. The commands that it served join the next supervisor, which one of
// them starts, and find the servers at their old addresses, with Temporal's state.
func TestKilledSupervisor(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	l, progress := join(t, root, nil)
	reader, _ := join(t, root, func(o *Options) { o.Need = Need{S3: true} })
	opts, err := l.Addresses().ClientOptions()
	require.NoError(t, err)
	c, err := client.Dial(opts)
	require.NoError(t, err)
	defer c.Close()
	_, err = c.ExecuteWorkflow(context.Background(), client.StartWorkflowOptions{ID: "before", TaskQueue: "none"},
		"Any")
	require.NoError(t, err)
	for range 2 {
		s := currentState(t, root)
		require.NoError(t, syscall.Kill(s.PID, syscall.SIGKILL))
		for name, pid := range s.Parts {
			eventually(t, name+" has ended with its supervisor", func() bool { return !alive(pid) })
		}
		eventually(t, "another supervisor has every part", func() bool {
			now, err := layout{root}.readState()
			return err == nil && now.PID != s.PID && now.Parts[partWorker] != 0 && now.Addresses.Temporal != ""
		})
		require.Equal(t, s.Addresses, currentState(t, root).Addresses)
		_, err = l.PeakMB(context.Background(), false) // waits until this command has joined it
		require.NoError(t, err)
		_, err = reader.PeakMB(context.Background(), false)
		require.NoError(t, err)
		d, err := c.DescribeWorkflowExecution(context.Background(), "before", "")
		require.NoError(t, err)
		require.Equal(t, "before", d.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId())
		require.Equal(t, 403, statusOf(t, reader.Addresses().S3Endpoint))
	}
	require.NoError(t, l.Err())
	require.NoError(t, reader.Err())
	require.Contains(t, progress.text(), "the local stack's supervisor has died: joining the next one")
	require.NoError(t, syscall.Kill(readInt(t, filepath.Join(root, "worker.child")), 0))
}

// Commands in different processes that start at the same time share one supervisor, and the lease of a killed command
// ends.
func TestCommandsAtOnce(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	self, err := os.Executable()
	require.NoError(t, err)
	var commands []*exec.Cmd
	var outs []*bufio.Reader
	for range 4 {
		cmd := exec.Command(self, "join")
		cmd.Env = append(os.Environ(), "ROPEWALK_HOME="+root)
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, cmd.Start())
		commands, outs = append(commands, cmd), append(outs, bufio.NewReader(out))
	}
	said := map[string]bool{}
	for _, out := range outs {
		line, err := out.ReadString('\n')
		require.NoError(t, err)
		said[line] = true
	}
	require.Len(t, said, 1, "all have the same addresses")
	s := currentState(t, root)
	log, err := os.ReadFile(layout{root}.supervisorLog())
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(string(log), "supervisor started"))
	for i, cmd := range commands {
		require.True(t, alive(s.PID))
		if i%2 == 0 {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			continue
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	for name, pid := range s.Parts {
		eventually(t, name+" has ended", func() bool { return !alive(pid) })
	}
}

// A command that is interrupted while the stack starts leaves nothing behind.
func TestInterruptedStart(t *testing.T) {
	needServers(t)
	root := t.TempDir()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	o := freePorts(t, testOptions(root))
	o.Progress = func(line string) {
		if strings.HasPrefix(line, "starting Temporal") {
			cancel()
		}
	}
	_, err := Join(ctx, o)
	require.ErrorIs(t, err, context.Canceled)
	eventually(t, "the supervisor has ended", func() bool {
		l, err := tryLock(layout{root}.aliveLock())
		if errors.Is(err, errLocked) {
			return false
		}
		require.NoError(t, err)
		l.release()
		return true
	})
	require.NoFileExists(t, layout{root}.state())
}
