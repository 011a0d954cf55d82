package cluster

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"github.com/ropewalk/ropewalk/schema"
	"github.com/ropewalk/ropewalk/workflows"
)

// form is how much happens to the cluster, and how long a run lasts meanwhile.
type form struct {
	steps  int           // of the quickstart; they must last longer than what happens
	mode   string        // of the disturbed run's rollouts; those of the undisturbed run have the other one
	killed []string      // queues of which a worker is killed at work
	cutFor time.Duration // how long a machine is cut off
	down   time.Duration // how long PostgreSQL is down
	second int           // members of each kind that are replaced by the second build, of two
}

// theForm is the whole form, or with ROPEWALK_CLUSTER_SHORT the short one, which has each fault once.
// ROPEWALK_CLUSTER_STEPS replaces the number of steps.
func theForm(t *testing.T) form {
	t.Helper()
	// a minute is longer than every heartbeat's time limit
	f := form{30, "staged", queues, time.Minute, 5 * time.Second, 2}
	if os.Getenv("ROPEWALK_CLUSTER_SHORT") != "" {
		f = form{12, "interleaved", nil, 10 * time.Second, time.Second, 1}
	}
	if text := os.Getenv("ROPEWALK_CLUSTER_STEPS"); text != "" {
		n, err := strconv.Atoi(text)
		require.NoError(t, err, "ROPEWALK_CLUSTER_STEPS")
		f.steps = n
	}
	return f
}

// TestCluster trains the quickstart twice: undisturbed, and while everything happens to the cluster that a supervisor
// can repair. Both runs have the same final weights, although one runs its episodes interleaved and the other in
// stages. In stages, all queues have work, so the whole form disturbs these. The short form disturbs interleaved ones.
func TestCluster(t *testing.T) {
	tools, f := need(t), theForm(t)
	first, second := build(t, "first"), build(t, "second")
	require.NotEqual(t, digest(t, first), digest(t, second))
	began := time.Now()
	s := start(t, tools, first)
	c := s.dial(t)
	t.Logf("the cluster took %s to start", time.Since(began).Round(time.Second))
	s.isolated(t)

	began = time.Now()
	other := map[string]string{"staged": "interleaved", "interleaved": "staged"}[f.mode]
	line := s.recipe(t, f, "undisturbed", "--set", "rollout.mode="+other)
	want := s.ropewalk(t, first, "operator", line...).ok(t).report(t)
	t.Logf("the undisturbed run took %s", time.Since(began).Round(time.Second))

	began = time.Now()
	line = s.recipe(t, f, "disturbed", "--set", "rollout.mode="+f.mode)
	cmd, out, messages := s.command(t, first, "operator", line...)
	require.NoError(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	s.disturb(t, f, c, "disturbed", second)
	select {
	case err := <-ended:
		require.NoError(t, err, messages.String())
	case <-time.After(20 * time.Minute):
		t.Fatal("the run does not end: ", messages.String())
	}
	t.Logf("the disturbed run took %s", time.Since(began).Round(time.Second))
	for _, w := range s.workers["rollout"] {
		t.Logf("%s went on from segments %d times", w.Name, strings.Count(w.Log(), "goes on from segments"))
	}
	got := result{cmd.Args, out.String(), messages.String(), nil}.report(t)
	require.Equal(t, want.Digest, got.Digest, "the final weights")
	require.Equal(t, want.Steps, got.Steps)
	for _, run := range []string{"undisturbed", "disturbed"} {
		s.ropewalk(t, first, "reader", "verify", run).ok(t)
	}
	s.isolated(t)
	s.roles(t, first, "disturbed")
	require.Equal(t, []string{digest(t, first), digest(t, second)}, s.builds(t, "disturbed", first, second),
		"both builds have committed")
}

// roles has a reader and an operator do what their roles are for, and the reader what it is not for.
func (s *site) roles(t *testing.T, program, run string) {
	t.Helper()
	s.ropewalk(t, program, "reader", "runs").ok(t)
	s.ropewalk(t, program, "reader", "sql", "select count(*) from rewards").ok(t)
	s.ropewalk(t, program, "reader", "report", run, "-o", filepath.Join(s.folder, "report.html")).ok(t)
	refused := s.ropewalk(t, program, "reader", "compact", run)
	require.Error(t, refused.failed)
	require.Contains(t, refused.err, "this access key lacks permission")
	s.ropewalk(t, program, "operator", "compact", run).ok(t)
	s.ropewalk(t, program, "operator", "gc", "--delete").ok(t)
	s.ropewalk(t, program, "reader", "verify", run).ok(t)
}

// report has the fields of `run --json` that the test reads.
type report struct {
	Digest string `json:"checkpoint_digest"`
	Steps  int    `json:"steps"`
}

func (r result) report(t *testing.T) (out report) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(r.out), &out), "%s\n%s", r.out, r.err)
	require.NotEmpty(t, out.Digest)
	return out
}

// recipe is the command line of a run of the quickstart.
func (s *site) recipe(t *testing.T, f form, run string, more ...string) []string {
	t.Helper()
	args := []string{"run", filepath.Join(root(t), "recipes", "quickstart.yaml"), "--json", "--run-id", run, "--set",
		"steps=" + strconv.Itoa(f.steps)}
	if f.steps < 85 {
		args = append(args, "--set", "warm_start.steps=200", "--set", "evaluation.problems=30")
	}
	return append(args, more...)
}

// build builds the program. Builds of different names have the same code and different digests.
func build(t *testing.T, name string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "ropewalk")
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags=-buildid="+name, "-o", path, "./cmd/ropewalk")
	cmd.Dir = root(t)
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return path
}

func digest(t *testing.T, path string) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// builds are those of the given programs that a run's manifests name.
func (s *site) builds(t *testing.T, run string, programs ...string) (found []string) {
	t.Helper()
	var all strings.Builder
	require.NoError(t, filepath.WalkDir(filepath.Join(s.objects, "runs", "run="+run, "manifests"),
		func(path string, d fs.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				text, err := os.ReadFile(path)
				all.Write(text)
				return err
			}
			return err
		}))
	for _, p := range programs {
		if code := digest(t, p); strings.Contains(all.String(), code) {
			found = append(found, code)
		}
	}
	return found
}

// disturb does to the cluster, in the middle of a run, all that it must survive. No one helps it: units start what has
// ended again.
func (s *site) disturb(t *testing.T, f form, c client.Client, run, second string) {
	t.Helper()
	did := func(what string) { t.Logf("step %d: %s", s.step(t, run), what) }
	for _, queue := range f.killed {
		at := s.working(t, c, run, queue)
		require.NoError(t, at.Kill())
		did("killed " + at.Name)
	}
	if f.mode == "interleaved" {
		s.killWithSegments(t, run)
		did("killed the workers of queue rollout that had kept segments")
	}
	require.NoError(t, s.nodes[0].Kill())
	did("killed a sandbox service")
	if f.mode == "staged" {
		s.working(t, c, run, "sandbox")
	}

	off := s.working(t, c, run, "rollout")
	require.NoError(t, s.network.Cut(off.machine))
	did("cut off " + off.Name)
	joined := time.Now().Add(f.cutFor)

	require.NoError(t, s.s3.Kill())
	did("killed the S3 server")
	s.proceeds(t, run)
	require.NoError(t, s.temporal.Kill())
	did("killed Temporal")
	s.proceeds(t, run)
	require.NoError(t, s.postgres.Restart(f.down))
	did("PostgreSQL was down for " + f.down.String())
	s.proceeds(t, run)

	for _, m := range s.each(f.second) {
		if m == off {
			continue
		}
		m.upgrade(t, second)
		if !slices.Contains(s.nodes, m) {
			m.polls(t)
		}
	}
	did("the second build has replaced the first, but on the machine that is cut off")
	s.proceeds(t, run)
	if wait := time.Until(joined); wait > 0 {
		time.Sleep(wait)
	}
	require.NoError(t, s.network.Join(off.machine))
	did(off.Name + " is back")
	s.proceeds(t, run)
	off.upgrade(t, second)
	off.polls(t)
	did("and there")
	s.proceeds(t, run)
}

// killWithSegments kills the workers that run episodes when results of calls are kept in segments. Calls are made slow
// until then: usually, a shard ends before it keeps any.
func (s *site) killWithSegments(t *testing.T, run string) {
	t.Helper()
	s.proceeds(t, run)
	defer s.slow()()
	eventually(t, func() bool {
		kept, err := filepath.Glob(filepath.Join(s.objects, "runs", "run="+run, "segments", "step=*", "gen=*",
			"shard=*", "*", "*-"+string(schema.ToolCalls)+".parquet"))
		require.NoError(t, err)
		return len(kept) > 0
	}, "a segment of %s with results of calls", run)
	for _, w := range s.workers["rollout"] {
		require.NoError(t, w.Kill())
	}
}

// slow stops the sandbox services for most of each second, until the function that it returns is called.
func (s *site) slow() (end func()) {
	stop := make(chan struct{})
	var stopped sync.WaitGroup
	signal := func(what syscall.Signal) {
		for _, node := range s.nodes {
			_ = node.Signal(what) // it is down only if the test has failed
		}
	}
	stopped.Go(func() {
		for {
			signal(syscall.SIGSTOP)
			select {
			case <-stop:
				signal(syscall.SIGCONT)
				return
			case <-time.After(950 * time.Millisecond):
				signal(syscall.SIGCONT)
				time.Sleep(50 * time.Millisecond)
			}
		}
	})
	return func() {
		close(stop)
		stopped.Wait()
	}
}

// step is the number of steps that a run has finished.
func (s *site) step(t *testing.T, run string) int {
	t.Helper()
	heads, err := filepath.Glob(filepath.Join(s.objects, "runs", "run="+run, "heads", "step=[0-9]*.json"))
	require.NoError(t, err)
	return len(heads)
}

// proceeds waits until a run has finished another step.
func (s *site) proceeds(t *testing.T, run string) {
	t.Helper()
	was := s.step(t, run)
	eventually(t, func() bool { return s.step(t, run) > was }, "step %d of %s to be finished", was+1, run)
}

// working waits until a worker of a queue executes an activity of a run, and returns the worker. Workflows have the
// queue cpu; their worker does not matter as long as one executes an activity.
func (s *site) working(t *testing.T, c client.Client, run, queue string) (found *member) {
	t.Helper()
	eventually(t, func() bool {
		id := workflows.StepWorkflowID(run, s.step(t, run)+1)
		for _, workflow := range append([]string{id, run}, s.shards(run, s.step(t, run)+1)...) {
			d, err := c.DescribeWorkflowExecution(t.Context(), workflow, "")
			if err != nil {
				continue // it has not begun, or has ended
			}
			for _, a := range d.GetPendingActivities() {
				pid, _, _ := strings.Cut(a.GetLastWorkerIdentity(), "@")
				for _, w := range s.workers[queue] {
					if a.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED && pid == strconv.Itoa(w.PID()) {
						found = w
						return true
					}
				}
			}
		}
		return false
	}, "a worker of %s to have work", queue)
	return found
}

// shards are the ids of the workflows of a step's shards.
func (s *site) shards(run string, step int) (ids []string) {
	for i := range 2 { // 64 prompts in shards of 32
		ids = append(ids, workflows.ShardWorkflowID(run, step, i))
	}
	return ids
}
