package cluster

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/internal/stack"
	"github.com/ropewalk/ropewalk/internal/testing/authority"
	"github.com/ropewalk/ropewalk/internal/testing/cluster"
	"github.com/ropewalk/ropewalk/store/s3"
)

// queues have two workers each.
var queues = []string{"cpu", "rollout", "sandbox", "gpu"}

// site is the whole cluster.
type site struct {
	folder    string
	network   *cluster.Network
	authority *authority.Authority
	postgres  *cluster.Postgres
	temporal  *cluster.Temporal
	s3        *cluster.Unit
	accounts  map[string]string // of the S3 server: access key to secret
	endpoint  string
	objects   string // the folder of the bucket's objects
	nodes     []*member
	workers   map[string][]*member // by queue
	desk      *cluster.Machine     // where people type commands
	token     string               // of the sandbox services
	python    string               // of the sandbox services
}

// member is a process on a machine of its own.
type member struct {
	*cluster.Unit
	machine *cluster.Machine
	start   func(program string) *exec.Cmd
}

// owner is the account that sets up the bucket.
const owner = "owner"

// need skips a test that cannot run here, or fails it if ROPEWALK_REQUIRE_CLUSTER is set. It returns the servers'
// programs by name.
func need(t *testing.T) (tools map[string]string) {
	t.Helper()
	if os.Getenv("ROPEWALK_TEST_CLUSTER") == "" {
		t.Skip("takes minutes: make test-cluster")
	}
	absent := func(what string) {
		t.Helper()
		if os.Getenv("ROPEWALK_REQUIRE_CLUSTER") != "" {
			t.Fatalf("ROPEWALK_REQUIRE_CLUSTER is set, and %s", what)
		}
		t.Skip(what)
	}
	if os.Getuid() != 0 {
		absent("network namespaces need root")
	}
	for program, from := range map[string]string{"ip": "iproute2", "setpriv": "util-linux", "python3": "python3"} {
		if _, err := exec.LookPath(program); err != nil {
			absent(fmt.Sprintf("%s is missing (Debian: apt-get install %s)", program, from))
		}
	}
	if _, err := cluster.FindPostgres(); err != nil {
		absent(err.Error())
	}
	trial, err := cluster.NewNetwork()
	if err != nil {
		absent("network namespaces cannot be made here: " + err.Error())
	}
	require.NoError(t, trial.Close())
	tools = map[string]string{}
	for _, name := range []string{"temporal-server", "temporal-sql-tool", "versitygw"} {
		path, err := stack.FindTool(name)
		if err != nil {
			absent(err.Error())
		}
		tools[name] = path
	}
	return tools
}

// start starts the whole cluster with one build of the program.
func start(t *testing.T, tools map[string]string, program string) *site {
	t.Helper()
	folder, err := os.MkdirTemp("", "ropewalk-cluster-") // that of the test is closed to PostgreSQL's user
	require.NoError(t, err)
	t.Cleanup(func() { os.RemoveAll(folder) })
	require.NoError(t, os.Chmod(folder, 0o711))
	s := &site{folder: folder, accounts: map[string]string{}, workers: map[string][]*member{}, token: rand.Text(),
		python: os.Getenv("ROPEWALK_SANDBOX_PYTHON")}
	s.network, err = cluster.NewNetwork()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.network.Close()) })
	s.authority, err = authority.New(folder)
	require.NoError(t, err)
	s.desk = s.machine(t, "desk")

	database := s.machine(t, "postgres")
	s.postgres, err = cluster.StartPostgres(database, filepath.Join(folder, "postgres"), 5432)
	require.NoError(t, err)
	s.ends(t, s.postgres.Unit)
	s.temporal, err = cluster.StartTemporal(s.machine(t, "temporal"), cluster.TemporalOptions{
		Server: tools["temporal-server"], SQLTool: tools["temporal-sql-tool"], Folder: folder, Database: s.postgres,
		Shards: 16, Authority: s.authority, Port: 7233})
	require.NoError(t, err)
	s.ends(t, s.temporal.Unit)
	s.startS3(t, tools["versitygw"])
	s.ropewalk(t, program, owner, "setup", "temporal").ok(t)
	s.ropewalk(t, program, owner, "setup", "store", "--policy", s.policy(t)).ok(t)

	var addresses []string
	for i := range 2 {
		node := s.startNode(t, program, fmt.Sprintf("node%d", i+1))
		s.nodes = append(s.nodes, node)
		addresses = append(addresses, "https://"+node.machine.IP+":8290")
	}
	for i := range 2 {
		require.NoError(t, cluster.Answers(s.nodes[i].machine.IP+":8290", time.Minute))
	}
	for _, queue := range queues {
		for i := range 2 {
			s.workers[queue] = append(s.workers[queue], s.startWorker(t, program, queue,
				fmt.Sprintf("%s%d", queue, i+1), strings.Join(addresses, ",")))
		}
	}
	for _, queue := range queues {
		for _, w := range s.workers[queue] {
			w.polls(t)
		}
	}
	return s
}

// ends ends a unit with the test, and shows what it has said if the test has failed.
func (s *site) ends(t *testing.T, u *cluster.Unit) {
	t.Cleanup(func() {
		require.NoError(t, u.Stop(syscall.SIGKILL, time.Second))
		if t.Failed() {
			lines := strings.Split(u.Log(), "\n")
			t.Logf("%s said at last:\n%s", u.Name, strings.Join(lines[max(0, len(lines)-25):], "\n"))
		}
	})
}

func (s *site) machine(t *testing.T, name string) *cluster.Machine {
	t.Helper()
	m, err := s.network.Machine(name)
	require.NoError(t, err)
	return m
}

// startS3 starts the S3 server with an account for each role. Its root account is the bucket's owner.
func (s *site) startS3(t *testing.T, program string) {
	t.Helper()
	m := s.machine(t, "s3")
	accounts := filepath.Join(s.folder, "accounts")
	objects := filepath.Join(s.folder, "s3")
	s.objects = filepath.Join(objects, s3.DefaultBucket)
	require.NoError(t, os.Mkdir(accounts, 0o700))
	require.NoError(t, os.Mkdir(objects, 0o700))
	listed := map[string]any{}
	for _, name := range []string{owner, "operator", "worker", "reader"} {
		s.accounts[name] = rand.Text()
		if name != owner {
			listed[name] = map[string]any{"access": name, "secret": s.accounts[name], "role": "user"}
		}
	}
	text, err := json.Marshal(map[string]any{"accessAccounts": listed})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(accounts, "users.json"), text, 0o600))
	pair, err := s.authority.Issue("s3", m.IP)
	require.NoError(t, err)
	s.s3 = cluster.StartUnit("s3", func() *exec.Cmd {
		cmd := m.Command(program, "--quiet", "--port", ":7070", "--iam-dir", accounts, "--cert", pair.Cert, "--key",
			pair.Key, "posix", objects)
		cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+owner, "ROOT_SECRET_KEY="+s.accounts[owner])
		return cmd
	})
	s.ends(t, s.s3)
	address := net.JoinHostPort(m.IP, "7070")
	require.NoError(t, cluster.Answers(address, time.Minute), s.s3.Said())
	s.endpoint = "https://" + address
}

// policy writes the bucket's policy of the roles, by the program that is documented.
func (s *site) policy(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("python3", filepath.Join(root(t), "deploy", "roles", "bucket-policy.py"),
		"reader=reader", "operator=operator", "worker=worker").Output()
	require.NoError(t, err)
	path := filepath.Join(s.folder, "policy.json")
	require.NoError(t, os.WriteFile(path, out, 0o600))
	return path
}

// environment is what a process on a machine gets: the servers' addresses, and the credentials of its role.
func (s *site) environment(t *testing.T, m *cluster.Machine, role string) []string {
	t.Helper()
	pair, err := s.authority.Issue(m.Name, m.IP)
	require.NoError(t, err)
	return append(s.bare(t, m.Name),
		"TEMPORAL_ADDRESS="+s.temporal.Address, "TEMPORAL_TLS_SERVER_CA_CERT_PATH="+s.authority.File,
		"TEMPORAL_TLS_CLIENT_CERT_PATH="+pair.Cert, "TEMPORAL_TLS_CLIENT_KEY_PATH="+pair.Key,
		"SSL_CERT_FILE="+s.authority.File, "ROPEWALK_NO_WORKER=1",
		"ROPEWALK_SANDBOX_CA="+s.authority.File, "ROPEWALK_SANDBOX_TOKEN="+s.token,
		"AWS_ENDPOINT_URL_S3="+s.endpoint, "AWS_ACCESS_KEY_ID="+role, "AWS_SECRET_ACCESS_KEY="+s.accounts[role])
}

// bare is the environment of a process that knows no server.
func (s *site) bare(t *testing.T, name string) []string {
	t.Helper()
	home := filepath.Join(s.folder, "home-"+name)
	require.NoError(t, os.MkdirAll(filepath.Join(home, "tmp"), 0o755))
	env := []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "ROPEWALK_HOME=" + filepath.Join(home, "state"),
		"TMPDIR=" + filepath.Join(home, "tmp"), "OPENBLAS_NUM_THREADS=1", "GOMAXPROCS=2"}
	for _, name := range []string{"PYENV_ROOT", "PYENV_VERSION", "LD_LIBRARY_PATH", "LANG"} {
		if v, ok := os.LookupEnv(name); ok {
			env = append(env, name+"="+v)
		}
	}
	return env
}

// startNode starts a sandbox service. It knows no server and holds no credentials but its token and certificate.
func (s *site) startNode(t *testing.T, program, name string) *member {
	t.Helper()
	m := s.machine(t, name)
	pair, err := s.authority.Issue(name, m.IP)
	require.NoError(t, err)
	secret := filepath.Join(s.folder, "token")
	require.NoError(t, os.WriteFile(secret, []byte(s.token), 0o600))
	env := s.bare(t, name)
	if s.python != "" {
		env = append(env, "ROPEWALK_SANDBOX_PYTHON="+s.python)
	}
	return s.add(t, m, program, env, "sandbox", "serve", "--listen", "0.0.0.0:8290", "--workers", "1", "--token-file",
		secret, "--tls-cert", pair.Cert, "--tls-key", pair.Key)
}

// startWorker starts a worker of a queue, as deploy/systemd does. Its tool calls run in the sandbox services. The
// engine has one thread: the weights depend on the number.
func (s *site) startWorker(t *testing.T, program, queue, name, services string) *member {
	t.Helper()
	m := s.machine(t, name)
	return s.add(t, m, program, s.environment(t, m, "worker"), "worker", "--queues", queue, "--threads", "1",
		"--host", name, "--host-address",
		m.IP, "--sandbox-address", services, "--log-level", "info")
}

// isolated requires that the sandbox services, which run the programs of models, have no credentials of the store.
func (s *site) isolated(t *testing.T) {
	t.Helper()
	for _, m := range s.nodes {
		var has []byte
		eventually(t, func() bool { // it may be between two starts
			var err error
			has, err = os.ReadFile(fmt.Sprintf("/proc/%d/environ", m.PID()))
			return err == nil && len(has) > 0
		}, "%s to run", m.Name)
		require.Contains(t, string(has), "ROPEWALK_HOME=", m.Name)
		require.NotContains(t, string(has), "AWS_", m.Name)
		for account, secret := range s.accounts {
			require.NotContains(t, string(has), secret, "%s has the secret of %s", m.Name, account)
		}
	}
}

func (s *site) add(t *testing.T, m *cluster.Machine, program string, env []string, args ...string) *member {
	t.Helper()
	one := &member{machine: m}
	one.start = func(program string) *exec.Cmd {
		cmd := m.Command(append([]string{program}, args...)...)
		cmd.Env, cmd.Dir = env, filepath.Join(s.folder, "home-"+m.Name)
		return cmd
	}
	one.Unit = cluster.StartUnit(m.Name, func() *exec.Cmd { return one.start(program) })
	s.ends(t, one.Unit)
	return one
}

// polls waits until a worker polls its queue.
func (m *member) polls(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return strings.Contains(m.Said(), "msg=poll") }, "%s to poll: %s", m.Name, m.Said)
}

// upgrade ends a process in an orderly way and starts it with another build.
func (m *member) upgrade(t *testing.T, program string) {
	t.Helper()
	require.NoError(t, m.Stop(syscall.SIGTERM, 30*time.Second))
	m.Resume(func() *exec.Cmd { return m.start(program) })
}

// result is a command that has ended.
type result struct {
	args     []string
	out, err string
	failed   error
}

func (r result) ok(t *testing.T) result {
	t.Helper()
	require.NoError(t, r.failed, "%v said:\n%s", r.args, r.err)
	return r
}

// command is a command that a person types at the desk.
func (s *site) command(t *testing.T, program, role string, args ...string) (cmd *exec.Cmd, out,
	messages *strings.Builder) {
	t.Helper()
	cmd = s.desk.Command(append([]string{program}, args...)...)
	cmd.Env, cmd.Dir = s.environment(t, s.desk, role), filepath.Join(s.folder, "home-desk")
	out, messages = &strings.Builder{}, &strings.Builder{}
	cmd.Stdout, cmd.Stderr = out, messages
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	return cmd, out, messages
}

// ropewalk runs a command at the desk to its end.
func (s *site) ropewalk(t *testing.T, program, role string, args ...string) result {
	t.Helper()
	cmd, out, messages := s.command(t, program, role, args...)
	err := cmd.Run()
	return result{args, out.String(), messages.String(), err}
}

// dial connects to the cluster's Temporal.
func (s *site) dial(t *testing.T) client.Client {
	t.Helper()
	c, err := s.temporal.Dial(t.Context(), "ropewalk")
	require.NoError(t, err)
	t.Cleanup(c.Close)
	return c
}

// each are the first n processes of each kind that run the program.
func (s *site) each(n int) []*member {
	some := slices.Clone(s.nodes[:n])
	for _, queue := range queues {
		some = append(some, s.workers[queue][:n]...)
	}
	return some
}

// root is the repository's root.
func root(t *testing.T) string {
	t.Helper()
	dir, err := filepath.Abs("../..")
	require.NoError(t, err)
	return dir
}

// patience bounds every wait.
const patience = 3 * time.Minute

// eventually polls until done.
func eventually(t *testing.T, done func() bool, what string, args ...any) {
	t.Helper()
	for end := time.Now().Add(patience); !done(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			for i, a := range args {
				if f, ok := a.(func() string); ok {
					args[i] = f()
				}
			}
			t.Fatalf("waited %s for "+what, append([]any{patience}, args...)...)
		}
	}
}
