package e2e

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

func TestKilledWorkerLosesNothing(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("worker-killed")...)
	worker := h.freezeInMidStep(t, "worker-killed")
	require.NoError(t, syscall.Kill(worker, syscall.SIGKILL))
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
	require.Contains(t, run.err.String(), "worker", "the restart is told")
	require.NotEqual(t, worker, h.state(t).Parts["worker"])
}

// freezeInMidStep stops the worker's process while a step has committed some of its stages and has
// no head, and returns its process id.
func (h *home) freezeInMidStep(t *testing.T, run string) int {
	t.Helper()
	return h.freezeWhile(t, func() bool { return h.record().partialStep(run) > 0 }, "a step of "+run+" to be half done")
}

// freezeWhile stops the worker's process while the record is as told, and returns its process id.
func (h *home) freezeWhile(t *testing.T, so func() bool, what string) int {
	t.Helper()
	worker := 0
	eventually(t, func() bool {
		if !so() {
			return false
		}
		worker = h.state(t).Parts["worker"]
		require.Positive(t, worker)
		require.NoError(t, syscall.Kill(worker, syscall.SIGSTOP))
		time.Sleep(20 * time.Millisecond) // a put that was on its way is done
		if so() {
			return true
		}
		require.NoError(t, syscall.Kill(worker, syscall.SIGCONT))
		return false
	}, "%s", what)
	return worker
}

func TestKilledServersLoseNothing(t *testing.T) {
	h, want := base(t)
	run := h.start(t, recipe("servers-killed")...)
	for _, part := range []string{"s3", "temporal"} {
		eventually(t, func() bool { return h.record().partialStep("servers-killed") > 0 || !run.running() }, "a step to be half done")
		pid := h.state(t).Parts[part]
		require.NoError(t, syscall.Kill(pid, syscall.SIGKILL))
		eventually(t, func() bool { now := h.state(t).Parts[part]; return now > 0 && now != pid }, "%s to be started again", part)
	}
	h.undisturbed(t, want, run.wait(t).ok(t).report(t))
}

func TestUpEndsCleanly(t *testing.T) {
	t.Parallel()
	h := newHome(t, t.TempDir())
	h.ensureUp(t)
	var pids []int
	for _, pid := range h.state(t).Parts {
		pids = append(pids, pid)
	}
	require.Len(t, pids, 3)
	h.ensureDown(t)
	for _, pid := range pids {
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH)
	}
	left, err := os.ReadDir(h.tmp)
	require.NoError(t, err)
	require.Empty(t, left, "scratch folders are removed")
}

func TestInterruptedRunGoesOn(t *testing.T) {
	h, want := down(t)
	h.interrupt(t, "interrupted")
	require.Less(t, h.record().heads("interrupted"), steps, "interrupted too late to prove anything")
	r := h.run(t, "resume", "interrupted", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
}

// interrupt starts a run without a stack beside it and sends it Ctrl-C after its first step.
func (h *home) interrupt(t *testing.T, name string) {
	t.Helper()
	run := h.start(t, recipe(name)...)
	eventually(t, func() bool { return h.record().heads(name) > 0 }, "the first step of %s", name)
	run.signal(t, syscall.SIGINT)
	r := run.wait(t)
	require.Equal(t, 130, r.code, r.err)
	require.Contains(t, r.err, "ropewalk resume "+name)
	require.Empty(t, r.out)
	require.NoFileExists(t, filepath.Join(h.dir, "stack.json"), "the stack ends with the command")
}

func TestKilledCommandGoesOn(t *testing.T) {
	h, want := down(t)
	run := h.start(t, recipe("command-killed")...)
	eventually(t, func() bool { return h.record().heads("command-killed") > 0 }, "the first step")
	run.signal(t, syscall.SIGKILL)
	run.wait(t)
	require.Less(t, h.record().heads("command-killed"), steps)
	r := h.run(t, "resume", "command-killed", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
}

func TestRunGoesOnWithoutItsHistory(t *testing.T) {
	h, want := down(t)
	h.interrupt(t, "forgotten")
	finished := h.record().heads("forgotten")
	before := h.stamps(t, "forgotten")
	h.forget(t)
	r := h.run(t, "resume", "forgotten", "--json").ok(t)
	h.ensureUp(t)
	h.undisturbed(t, want, r.report(t))
	require.Less(t, finished, steps)
	after := h.stamps(t, "forgotten")
	for key, stamp := range before {
		require.Equal(t, stamp, after[key], "%s was committed and is written again", key)
	}
}

// forget deletes the database of the Temporal server, which is down.
func (h *home) forget(t *testing.T) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(h.dir, "temporal.db*"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, f := range files {
		require.NoError(t, os.Remove(f))
	}
}

// stamps returns when each committed manifest of a run was written.
func (h *home) stamps(t *testing.T, run string) map[string]time.Time {
	t.Helper()
	out := map[string]time.Time{}
	for _, key := range h.record().keys(schema.ManifestsPrefix(run)) {
		info, err := os.Stat(h.record().path(key))
		require.NoError(t, err)
		out[key] = info.ModTime()
	}
	require.NotEmpty(t, out)
	return out
}
