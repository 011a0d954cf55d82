package stack

import (
	"bufio"
	"context"
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

// running holds the processes of a stack by the servers' names, and the addresses.
type running struct {
	supervisors, servers map[string]int
	addresses            Addresses
}

func current(t *testing.T, root string) running {
	t.Helper()
	r := running{map[string]int{}, map[string]int{}, Addresses{}}
	for name := range titles {
		s, err := layout{root}.running(name)
		require.NoError(t, err)
		if s.PID > 0 {
			r.supervisors[name], r.servers[name] = s.PID, s.Server
		}
		r.addresses, err = layout{root}.with(r.addresses, s.Addresses)
		require.NoError(t, err)
	}
	return r
}

// killSupervisors kills all supervisors of a stack and waits until the servers have ended with them.
func killSupervisors(t *testing.T, root string) running {
	t.Helper()
	was := current(t, root)
	for _, pid := range was.supervisors {
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
	}
	for name, pid := range was.servers {
		eventually(t, name+" has ended with its supervisor", func() bool { return !alive(pid) })
	}
	return was
}

// awaitNext waits until every server that ran has another supervisor and is healthy.
func awaitNext(t *testing.T, root string, was running) {
	t.Helper()
	for name, pid := range was.supervisors {
		eventually(t, "another supervisor has "+name, func() bool {
			now, err := layout{root}.running(name)
			return err == nil && now.PID != pid && now.Healthy
		})
	}
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
	require.Greater(t, first.PeakMB(), 30.0, "three servers take that much")
	require.Less(t, first.PeakMB(), 4096.0)

	before := current(t, root)
	second, _ := join(t, root, nil)
	require.Equal(t, a, second.Addresses(), "the second command shares the stack")
	require.True(t, first.Stays(), "the second command holds it")
	require.Equal(t, before, current(t, root), "and starts nothing")

	killAndWatch(t, root, temporalName, progress, "Temporal died (signal: killed): starting it again")
	checkNamespace(t, a)
	child := readInt(t, filepath.Join(root, "worker.child"))
	killAndWatch(t, root, workerName, progress, "the worker died (signal: killed): starting it again")
	eventually(t, "the killed worker's child in another session has ended", func() bool { return !alive(child) })

	pids := everyProcess(t, root)
	require.NoError(t, first.Close())
	for _, pid := range pids {
		require.True(t, alive(pid), "a stack in use is not stopped")
	}
	require.NoError(t, second.Err())
	require.False(t, second.Stays(), "the second command is the last one")
	require.NoError(t, second.Close())
	for _, pid := range pids {
		require.False(t, alive(pid), "Close of the last lease waits for the end")
	}
	for name, pid := range before.supervisors {
		eventually(t, "the supervisor of "+name+" has ended", func() bool { return !alive(pid) })
		require.NoFileExists(t, layout{root}.state(name))
	}

	third, _ := join(t, root, func(o *Options) { o.Need = Need{Temporal: true} })
	require.Equal(t, a.Namespace, third.Addresses().Namespace)
	require.Len(t, current(t, root).supervisors, 1, "nothing is started that is not needed")
	checkNamespace(t, third.Addresses())
}

// killAndWatch kills a server and waits until it is healthy again, on its old address.
func killAndWatch(t *testing.T, root, name string, progress *lines, want string) {
	t.Helper()
	old, said := current(t, root), strings.Count(progress.text(), want)
	require.NoError(t, syscall.Kill(old.servers[name], syscall.SIGKILL))
	eventually(t, name+" is restarted", func() bool {
		now, err := layout{root}.running(name)
		return err == nil && now.Healthy && now.Server != old.servers[name]
	})
	eventually(t, "the command says so", func() bool { return strings.Count(progress.text(), want) > said })
	require.Equal(t, old.addresses, current(t, root).addresses)
}

// everyProcess lists the servers and the worker's child.
func everyProcess(t *testing.T, root string) []int {
	pids := []int{readInt(t, filepath.Join(root, "worker.child"))}
	for _, pid := range current(t, root).servers {
		pids = append(pids, pid)
	}
	require.Len(t, pids, 4)
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
	require.NotContains(t, string(env), orderVariable)
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

// Taken ports are replaced, with a notice.
func TestTakenPorts(t *testing.T) {
	needServers(t)
	var ports []string
	l, progress := join(t, t.TempDir(), func(o *Options) {
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

// Servers end with their killed supervisors. The commands that use them join the next supervisors, which one of the
// commands starts, and find the servers at their old addresses, with Temporal's state.
func TestKilledSupervisors(t *testing.T) {
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
		was := killSupervisors(t, root)
		awaitNext(t, root, was)
		require.Equal(t, was.addresses, current(t, root).addresses)
		d, err := c.DescribeWorkflowExecution(context.Background(), "before", "")
		require.NoError(t, err)
		require.Equal(t, "before", d.GetWorkflowExecutionInfo().GetExecution().GetWorkflowId())
		require.Equal(t, 403, statusOf(t, reader.Addresses().S3Endpoint))
	}
	require.NoError(t, l.Err())
	require.NoError(t, reader.Err())
	for _, title := range titles {
		require.Contains(t, progress.text(), "the supervisor of "+title+" has died: joining the next one")
	}
	require.NoError(t, syscall.Kill(readInt(t, filepath.Join(root, "worker.child")), 0))
}

// Commands in different processes that start at the same time share each server's supervisor, and the lease of a killed
// command ends.
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
	s := current(t, root)
	require.Len(t, s.supervisors, 3)
	log, err := os.ReadFile(layout{root}.supervisorLog())
	require.NoError(t, err)
	require.Equal(t, 3, strings.Count(string(log), "supervisor started"))
	for i, cmd := range commands {
		require.Equal(t, s, current(t, root))
		if i%2 == 0 {
			require.NoError(t, cmd.Process.Kill())
			require.Error(t, cmd.Wait())
			continue
		}
		require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
		require.NoError(t, cmd.Wait())
	}
	for name, pid := range s.servers {
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
	require.Empty(t, current(t, root).supervisors, "Join has waited for the end")
	for name := range titles {
		require.NoFileExists(t, layout{root}.state(name))
	}
}
