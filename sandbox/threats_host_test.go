package sandbox_test

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// secret is in every place of the host that attacks try to read.
const secret = "canary-3f1c9e"

// host is what attacks aim at: a process, a file and sockets of the same user that calls run as.
type host struct {
	canary  *exec.Cmd
	file    string
	sockets []net.PacketConn
	names   []string // of the sockets; the first is abstract
	offset  time.Duration
}

// newHost creates the targets. Orphans among this process's descendants become its children, so that a walk over its
// descendants finds every process that a call may have left.
func newHost(t *testing.T) *host {
	t.Helper()
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	dir, err := os.MkdirTemp("", "ropewalk-host-")
	require.NoError(t, err)
	h := &host{canary: exec.Command("/bin/sleep", "3600"), file: filepath.Join(dir, "canary"), offset: clockOffset()}
	require.NoError(t, os.WriteFile(h.file, []byte(secret), 0o644))
	if os.Geteuid() == 0 {
		const unprivileged = 65534
		h.canary.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: unprivileged,
			Gid: unprivileged}}
		require.NoError(t, os.Chown(h.file, unprivileged, unprivileged))
		require.NoError(t, os.Chmod(dir, 0o777))
	}
	require.NoError(t, h.canary.Start())
	for _, name := range []string{fmt.Sprintf("@ropewalk-%d", os.Getpid()), filepath.Join(dir, "socket")} {
		socket, err := net.ListenPacket("unixgram", name)
		require.NoError(t, err)
		h.sockets, h.names = append(h.sockets, socket), append(h.names, name)
	}
	require.NoError(t, os.Chmod(h.names[1], 0o777))
	t.Cleanup(func() {
		_ = h.canary.Process.Kill()
		_ = h.canary.Wait() // fails, because it was killed
		for _, s := range h.sockets {
			require.NoError(t, s.Close())
		}
		require.NoError(t, os.RemoveAll(dir))
	})
	return h
}

// words returns Python code that tells attacks where the targets are.
func (h *host) words(calls map[string]int) string {
	var numbers []string
	for name, n := range calls {
		numbers = append(numbers, fmt.Sprintf("%q: %d", name, n))
	}
	slices.Sort(numbers)
	return fmt.Sprintf("SYS = {%s}\nFILE, VICTIM, HOST, SOCKETS = %q, %d, %d, (%q, %q)\n",
		strings.Join(numbers, ", "), h.file, h.canary.Process.Pid, os.Getpid(), `\0`+h.names[0][1:], h.names[1])
}

// snapshot describes everything on the host that must not change.
type snapshot struct {
	Descendants []string // processes below this one, with priority, scheduling class and limits
	Files       []string // the canary file and its folder
	Shared      []string // what the sandbox's user owns in /dev/shm and in System V IPC
	Mounts      string
	Hostname    string
	Descriptors int
	Sockets     int
}

func (h *host) snapshot(t *testing.T) snapshot {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	require.NoError(t, err)
	name, err := os.Hostname()
	require.NoError(t, err)
	s := snapshot{Files: h.files(t), Shared: shared(t), Mounts: string(mounts), Hostname: name,
		Descriptors: count("/proc/self/fd")}
	for _, pid := range descendants(os.Getpid()) {
		s.Descendants = append(s.Descendants, about(pid))
		s.Sockets += socketsOf(pid)
	}
	return s
}

// unchanged compares the host with a snapshot. It waits for the last processes of a call to end.
func (h *host) unchanged(t *testing.T, before snapshot) {
	t.Helper()
	const hangs = 2 * time.Minute
	now := h.snapshot(t)
	for end := time.Now().Add(hangs); !equal(before, now) && time.Now().Before(end); now = h.snapshot(t) {
		time.Sleep(10 * time.Millisecond)
	}
	require.Equal(t, before, now, "the host has changed")
	require.NoError(t, h.canary.Process.Signal(syscall.Signal(0)))
	require.InDelta(t, h.offset.Seconds(), clockOffset().Seconds(), 1, "the clock was set")
	for i, s := range h.sockets {
		require.NoError(t, s.SetReadDeadline(time.Now().Add(-time.Second)))
		_, _, err := s.ReadFrom(make([]byte, 64))
		require.ErrorIs(t, err, os.ErrDeadlineExceeded, "something was sent to %s", h.names[i])
	}
}

func equal(a, b snapshot) bool { return fmt.Sprint(a) == fmt.Sprint(b) }

// files describes the canary file and the other files in its folder.
func (h *host) files(t *testing.T) (out []string) {
	t.Helper()
	content, err := os.ReadFile(h.file)
	require.NoError(t, err)
	entries, err := os.ReadDir(filepath.Dir(h.file))
	require.NoError(t, err)
	for _, e := range entries {
		info, err := e.Info()
		require.NoError(t, err)
		stat := info.Sys().(*syscall.Stat_t)
		marks := make([]byte, 256)
		n, err := unix.Llistxattr(filepath.Join(filepath.Dir(h.file), e.Name()), marks)
		require.NoError(t, err)
		out = append(out, fmt.Sprint(e.Name(), info.Mode(), info.Size(), info.ModTime(), stat.Uid, stat.Nlink,
			string(marks[:n])))
	}
	return append(out, string(content))
}

// clockOffset returns the difference between the wall clock and the monotonic clock.
func clockOffset() time.Duration {
	var wall, steady unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall)
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &steady)
	return time.Duration(wall.Nano() - steady.Nano())
}

// shared lists the memory that outlives processes and that the calls' user owns.
func shared(t *testing.T) (out []string) {
	t.Helper()
	user := os.Geteuid()
	if user == 0 {
		user = 65534
	}
	entries, err := os.ReadDir("/dev/shm")
	require.NoError(t, err)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && int(info.Sys().(*syscall.Stat_t).Uid) == user {
			out = append(out, e.Name())
		}
	}
	column := map[string]int{"shm": 7, "sem": 4, "msg": 7}
	for kind, at := range column {
		text, err := os.ReadFile("/proc/sysvipc/" + kind)
		require.NoError(t, err)
		for _, line := range strings.Split(string(text), "\n")[1:] {
			if f := strings.Fields(line); len(f) > at && f[at] == strconv.Itoa(user) {
				out = append(out, kind+line)
			}
		}
	}
	slices.Sort(out)
	return out
}

// descendants lists the processes below a process, in order.
func descendants(pid int) (out []int) {
	tasks, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	for _, task := range tasks {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, task.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				out = append(append(out, child), descendants(child)...)
			}
		}
	}
	slices.Sort(out)
	return out
}

// about describes what an attack could change about a process: that it exists and is not stopped, its priority,
// scheduling class, CPUs and limits.
func about(pid int) string {
	stat, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	limits, _ := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	f := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	if len(f) < 39 {
		return fmt.Sprint(pid, " is gone")
	}
	var cpus unix.CPUSet
	_ = unix.SchedGetaffinity(pid, &cpus)
	stopped := f[0] == "T" || f[0] == "t" || f[0] == "Z"
	return fmt.Sprintln(pid, "stopped", stopped, "priority", f[15], f[16], "class", f[38], "cpus", cpus.Count(),
		string(limits))
}

func count(dir string) int {
	entries, _ := os.ReadDir(dir)
	return len(entries)
}

func socketsOf(pid int) (n int) {
	links, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", pid))
	for _, l := range links {
		if to, err := os.Readlink(l); err == nil && strings.HasPrefix(to, "socket:") {
			n++
		}
	}
	return n
}
