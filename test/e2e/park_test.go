package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// breakable has the stack up in a mount namespace of its own, where its files can be taken away. The object store is on
// a small file system, which is empty.
func (h *home) breakable(t *testing.T) (inside func(script string)) {
	t.Helper()
	objects := filepath.Join(h.dir, "s3")
	require.NoError(t, os.MkdirAll(objects, 0o755))
	for _, program := range []string{"unshare", "nsenter", "mount", "sh"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("cannot take files away from a stack: %v", err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can give a stack a mount namespace and leave its sandbox as strong")
	}
	wrap := []string{"unshare", "--mount", "sh", "-c", "mount -t tmpfs -o size=64m,mode=755 none " + objects +
		` && exec "$@"`, "sh"}
	if out, err := exec.Command(wrap[0], append(wrap[1:], "true")...).CombinedOutput(); err != nil {
		t.Skipf("cannot take files away from a stack: %v: %s", err, out)
	}
	up := *h
	up.wrap = wrap
	h.up = up.start(t, "up")
	h.up.says(t, "the stack stays up")
	t.Cleanup(func() { h.ensureDown(t) })
	return func(script string) {
		t.Helper()
		pid := strconv.Itoa(h.state(t).Parts["s3"])
		out, err := exec.Command("nsenter", "-t", pid, "-m", "sh", "-c", script).CombinedOutput()
		require.NoError(t, err, "%s: %s", script, out)
	}
}

// The disk is full, and Python is gone: the run parks, and goes on when it is told to.
func TestStagesThatBreakParkAndGoOn(t *testing.T) {
	h, _ := needs(t, ownServers("it fills their disk and hides programs from them"))
	inside := h.breakable(t)
	// A reader opens the store's folder by itself: it must look where the server's file systems are mounted.
	server := strconv.Itoa(h.state(t).Parts["s3"])
	h.objects = filepath.Join("/proc", server, "root", h.record().folder)
	reader := *h
	reader.wrap = []string{"nsenter", "-t", server, "-m"}
	ballast := filepath.Join(h.dir, "s3", "ballast")
	var hide, show []string
	for _, python := range interpreters(t) {
		hide, show = append(hide, "mount --bind /dev/null "+python), append(show, "umount "+python)
	}

	run := h.start(t, recipe("broken", "--set", "warm_start.steps=100", "--set", "steps=2")...)
	worker := h.freezeInMidStep(t, "broken") // it goes no further until the disk is full
	inside("dd if=/dev/zero of=" + ballast + " bs=64k 2>/dev/null || true")
	require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
	p := run.wait(t).parked(t)
	require.Contains(t, p.Parked.Failures[0].Text, "full", "%+v", p.Parked)

	inside("rm " + ballast)
	inside(strings.Join(hide, " && "))
	signalChildren(t, h.state(t).Parts["worker"], syscall.SIGKILL)
	p = h.run(t, "unpark", "broken", "--retry", "--json").parked(t)
	require.Contains(t, p.Parked.Failures[0].Text, "no interpreter can be started", "%+v", p.Parked)

	inside(strings.Join(show, " && "))
	require.Equal(t, 2, h.run(t, "unpark", "broken", "--retry", "--json").ok(t).report(t).Steps)
	reader.run(t, "verify", "broken").ok(t)
	reader.run(t, "replay", "--check", "broken").ok(t)
}

// interpreters lists the Pythons that the sandbox may have found.
func interpreters(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, name := range []string{"python3", "/usr/bin/python3", "/usr/local/bin/python3"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		path, err = filepath.EvalSymlinks(path)
		require.NoError(t, err)
		if !slices.Contains(all, path) {
			all = append(all, path)
		}
	}
	if out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output(); err == nil {
		if path, err := filepath.EvalSymlinks(strings.TrimSpace(string(out))); err == nil &&
			!slices.Contains(all, path) {
			all = append(all, path) // behind a shim
		}
	}
	require.NotEmpty(t, all)
	return all
}

// signalChildren sends a signal to the processes that a process has started.
func signalChildren(t *testing.T, parent int, what syscall.Signal) {
	t.Helper()
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", parent))
	require.NoError(t, err)
	sent := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, field := range strings.Fields(string(text)) {
			pid, err := strconv.Atoi(field)
			require.NoError(t, err)
			_ = syscall.Kill(pid, what) // it may have ended by itself
			sent++
		}
	}
	require.Positive(t, sent)
}

func TestPauseSetStopSteerALiveRun(t *testing.T) {
	h, _ := needs(t, sharedStack)
	const run = "steered"
	live := h.start(t, "run", tiny(), "--json", "--run-id", run, "--set", "steps=60")
	live.says(t, "  step  reward")
	h.run(t, "pause", run).ok(t)
	live.says(t, "ropewalk unpause "+run)
	twice := h.run(t, "pause", run)
	require.Equal(t, 2, twice.code)
	require.Contains(t, twice.err, "paused already")
	done := h.record().heads(run)
	h.with("ROPEWALK_ACTOR=ada").run(t, "set", run, "--learning-rate", "0.00123", "--temperature", "0.9").ok(t)
	bad := h.run(t, "set", run, "--temperature", "-1")
	require.Equal(t, 2, bad.code, bad.err)
	require.Contains(t, bad.err, "rollout.temperature")
	require.Equal(t, done, h.record().heads(run), "a paused run takes no step")
	h.run(t, "unpause", run).ok(t)
	eventually(t, func() bool { return h.record().heads(run) > done+1 || !live.running() }, "two more steps")
	h.with("ROPEWALK_ACTOR=grace").run(t, "stop", run).ok(t)
	r := live.wait(t).ok(t)
	require.Contains(t, r.out, `"status":"stopped_early"`)
	last := h.record().heads(run)
	require.Less(t, last, 60)

	h.run(t, "verify", run).ok(t)
	var amends []string
	for _, d := range h.deeds(t, run) {
		if d.Action == schema.DeedAmend {
			amends = append(amends, d.Actor)
			require.Equal(t, schema.StageAmend, h.record().manifest(t, d.Manifest).Stage)
		}
	}
	require.Equal(t, []string{"ada", "grace"}, amends)
	require.Regexp(t, `(?m)^the recipe was changed from step \d+: optimizer.lr=0.00123 rollout.temperature=0.9 \(ada\)`+
		`\nthe recipe was changed from step \d+: steps=\d+ \(grace\)$`, h.run(t, "show", run).ok(t).out)
	q := h.run(t, "sql", "--run", run, "--csv", "select count(*) from updates where step > "+strconv.Itoa(done)+
		" and lr <> 0.00123")
	require.Equal(t, "0", lastLine(q.ok(t).out))
	again := h.run(t, "resume", run, "--json").ok(t)
	require.Contains(t, again.out, fmt.Sprintf(`"steps":%d`, last), "a stopped run is done")
}

// A step continues without a shard that cannot be made, and the record says which shard and why.
func TestSkippedShardIsRecorded(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	const run = "base"
	at := func(stage string) schema.Place { return schema.At(run, steps, stage) }
	turns := h.record().manifest(t,
		at(schema.StageRollout).WithTurn(0).WithShard(1).ManifestKey()).ShardsOf(schema.Turns)
	restore := h.record().flip(t, turns[0].Key)
	// As if the run had been stopped with shard 1's rollout done and nothing after it.
	h.record().unfinish(t, run, schema.StageAssemble, schema.StageReward, schema.StageResample, schema.StageAdvantage,
		schema.StageUpdate, schema.StagePublish)
	for _, stage := range []string{schema.StageAssemble, schema.StageReward} {
		require.NoError(t, os.Remove(h.record().path(at(stage).WithShard(1).ManifestKey())))
	}
	for turn := range 3 {
		for _, stage := range []string{schema.StageRollout, schema.StageSandbox} {
			if key := at(stage).WithTurn(turn).ManifestKey(); h.record().has(key) {
				require.NoError(t, os.Remove(h.record().path(key)))
			}
		}
	}
	p := h.run(t, "resume", run, "--json").parked(t)
	require.Equal(t, schema.StageAssemble, p.Parked.Failures[0].Stage)
	require.Equal(t, 1, p.Parked.Failures[0].Shard)
	require.Contains(t, p.Parked.Skip, "step 4 goes on without 1 of its 2 shards")
	h.run(t, "unpark", run, "--skip", "--json").ok(t).report(t)
	restore()

	h.run(t, "verify", run).ok(t)
	q := h.run(t, "sql", "--run", run, "--csv",
		"select count(*) filter (reason = 'excluded') || ' of ' || count(*) from selection where step = 4")
	require.Equal(t, "32 of 64", lastLine(q.ok(t).out))
	q = h.run(t, "sql", "--run", run, "--csv", "select count(*) from rewards where step = 4")
	require.Equal(t, "32", lastLine(q.ok(t).out))
	q = h.run(t, "sql", "--run", run, "--csv", "select distinct excluded from selection where excluded is not null")
	require.Contains(t, q.ok(t).out, turns[0].Key)
	h.run(t, "replay", "--check", run).ok(t)
}

// A step that is retried with other settings repeats its rollout, as a separate generation.
func TestRetryWithOtherSettings(t *testing.T) {
	h, _ := needs(t, ownNamespace)
	h.ensureUp(t)
	const run = "base"
	turns := h.record().manifest(t,
		schema.At(run, steps, schema.StageRollout).WithTurn(0).WithShard(1).ManifestKey()).ShardsOf(schema.Turns)
	restore := h.record().flip(t, turns[0].Key)
	h.record().unfinish(t, run, schema.StageAdvantage, schema.StageUpdate, schema.StagePublish)
	h.run(t, "resume", run, "--json").parked(t)
	bad := h.run(t, "unpark", run, "--retry", "--shard-groups", "0")
	require.Equal(t, 2, bad.code, bad.err)
	require.Contains(t, bad.err, "rollout.shard_groups=0: must be ≥ 1")
	h.run(t, "unpark", run, "--retry", "--shard-groups", "8", "--temperature", "0.9", "--json").ok(t).report(t)
	restore()

	shard := func(gen, s int) string {
		return schema.At(run, steps, schema.StageRollout).WithTurn(0).WithShard(s).WithGen(gen).ManifestKey()
	}
	require.True(t, h.record().has(shard(0, 1)), "what was there is kept")
	require.True(t, h.record().has(shard(1, 0)))
	require.False(t, h.record().has(shard(1, 1)), "all groups are one shard now")
	h.run(t, "verify", run).ok(t)
	q := h.run(t, "sql", "--run", run, "--csv", "select distinct gen from rewards where step = 4")
	require.Equal(t, "1", lastLine(q.ok(t).out))
	q = h.run(t, "sql", "--run", run, "--csv", "select count(*) from selection where step = 4")
	require.Equal(t, "64", lastLine(q.ok(t).out))
	h.run(t, "replay", "--check", run).ok(t)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
