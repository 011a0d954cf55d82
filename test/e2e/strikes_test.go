package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/schema"
)

// fault is a kind of strike. It reports whether it could happen.
type fault struct {
	name   string
	happen func(s *storm, t *testing.T) bool
}

func faultsOfStorms() []fault {
	out := []fault{
		{"kill worker", func(s *storm, t *testing.T) bool { return s.kill(t, "worker") }},
		{"kill worker", func(s *storm, t *testing.T) bool { return s.kill(t, "worker") }}, // the most frequent
		{"kill temporal", func(s *storm, t *testing.T) bool { return s.kill(t, "temporal") }},
		{"kill s3", func(s *storm, t *testing.T) bool { return s.kill(t, "s3") }},
		{"kill all three", func(s *storm, t *testing.T) bool { return s.kill(t, "worker", "temporal", "s3") }},
		{"kill supervisors", (*storm).killSupervisors},
		{"kill command", func(s *storm, _ *testing.T) bool { return s.signalCommand(syscall.SIGKILL) }},
		{"interrupt command", func(s *storm, _ *testing.T) bool { return s.signalCommand(syscall.SIGINT) }},
		{"cancel", (*storm).cancel},
		{"kill interpreters", func(s *storm, t *testing.T) bool { return s.interpreters(t, syscall.SIGKILL, 0) }},
		{"stop interpreters", func(s *storm, t *testing.T) bool {
			return s.interpreters(t, syscall.SIGSTOP, time.Second)
		}},
		{"plant objects", (*storm).plant},
		{"fill the disk", (*storm).fillDisk},
		{"kill inference server", (*storm).killServer},
		{"stop inference server", (*storm).stopServer},
	}
	for _, part := range []string{"worker", "temporal", "s3"} {
		out = append(out, fault{"stop " + part, func(s *storm, t *testing.T) bool { return s.stop(t, part) }})
	}
	for _, how := range []string{"flip", "halve", "empty", "delete"} {
		out = append(out, fault{how + " objects", func(s *storm, t *testing.T) bool { return s.damage(t, how) }})
	}
	return out
}

// parts are the processes of the stack that run, by name; none while it starts or ends.
func (s *storm) parts(t *testing.T) state {
	t.Helper()
	if !s.h.runs() {
		return state{}
	}
	return s.h.state(t)
}

func (s *storm) kill(t *testing.T, names ...string) (some bool) {
	t.Helper()
	now := s.parts(t)
	for _, name := range names {
		if pid := now.Parts[name]; pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil {
			some = true
		}
	}
	return some
}

// stop stops a process for up to 14 s, which is longer than the heartbeats' time limit.
func (s *storm) stop(t *testing.T, name string) bool {
	t.Helper()
	pid := s.parts(t).Parts[name]
	if pid <= 0 || syscall.Kill(pid, syscall.SIGSTOP) != nil {
		return false
	}
	<-time.After(time.Duration([]int{1, 4, 14}[s.rng.IntN(3)]) * time.Second)
	_ = syscall.Kill(pid, syscall.SIGCONT)
	return true
}

// smallDisk moves the objects to a small file system, if this process may make one.
func (s *storm) smallDisk(t *testing.T) {
	t.Helper()
	objects := filepath.Join(s.h.dir, "s3")
	moved := objects + ".moved"
	require.NoError(t, os.Rename(objects, moved))
	require.NoError(t, os.Mkdir(objects, 0o755))
	err := syscall.Mount("none", objects, "tmpfs", 0, fmt.Sprintf("size=%d,mode=755", diskOfStorms))
	if s.small = err == nil; s.small {
		t.Cleanup(func() {
			s.h.ensureDown(t)
			require.NoError(t, syscall.Unmount(objects, syscall.MNT_DETACH))
		})
	}
	out, err := exec.Command("cp", "--archive", moved+"/.", objects).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// fillDisk leaves no space for objects for a while.
func (s *storm) fillDisk(t *testing.T) bool {
	t.Helper()
	if !s.small {
		return false
	}
	ballast := filepath.Join(s.h.dir, "s3", "ballast")
	require.ErrorIs(t, os.WriteFile(ballast, make([]byte, diskOfStorms), 0o600), syscall.ENOSPC)
	<-time.After(time.Duration(1+s.rng.IntN(6)) * time.Second)
	require.NoError(t, os.Remove(ballast))
	return true
}

// served starts the server that a setting names, with the policy of the base run, and fills in where it is.
func (s *storm) served(t *testing.T, setting string) string {
	t.Helper()
	if !strings.Contains(setting, "SERVER") {
		return setting
	}
	s.serve(t, "127.0.0.1:0")
	return strings.NewReplacer("SERVER", s.address, "WEIGHTS", t.TempDir()).Replace(setting)
}

func (s *storm) serve(t *testing.T, address string) {
	t.Helper()
	s.server = s.h.start(t, "serve", "base", "--allow-load", "--listen", address, "--threads", "1")
	s.address = s.server.announces(t, regexp.MustCompile(`listening on http://([^/]+)/`))
}

// killServer kills the inference server. The weights that it has loaded are lost with it.
func (s *storm) killServer(t *testing.T) bool {
	t.Helper()
	if s.server == nil {
		return false
	}
	require.NoError(t, s.server.cmd.Process.Kill())
	<-s.server.ended
	<-time.After(time.Duration(s.rng.IntN(3000)) * time.Millisecond)
	s.serve(t, s.address)
	return true
}

func (s *storm) stopServer(t *testing.T) bool {
	t.Helper()
	if s.server == nil || s.server.cmd.Process.Signal(syscall.SIGSTOP) != nil {
		return false
	}
	<-time.After(time.Duration([]int{1, 5, 15}[s.rng.IntN(3)]) * time.Second)
	return s.server.cmd.Process.Signal(syscall.SIGCONT) == nil
}

func (s *storm) killSupervisors(t *testing.T) (some bool) {
	t.Helper()
	for _, pid := range s.parts(t).Supervisors {
		some = pid > 0 && syscall.Kill(pid, syscall.SIGKILL) == nil || some
	}
	return some
}

func (s *storm) signalCommand(what syscall.Signal) bool {
	return s.command.running() && s.command.cmd.Process.Signal(what) == nil
}

func (s *storm) cancel(t *testing.T) bool {
	t.Helper()
	if !s.command.running() || !s.begun() {
		return false
	}
	s.h.run(t, "cancel", s.run) // it may meet what other strikes have left
	return true
}

// interpreters signals half of the worker's Python processes, and continues those that it stops after a time.
func (s *storm) interpreters(t *testing.T, what syscall.Signal, after time.Duration) bool {
	t.Helper()
	var all []int
	if worker := s.parts(t).Parts["worker"]; worker > 0 {
		for _, pid := range descendants(worker) {
			line, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid)) // of a process that has ended: nothing
			if bytes.Contains(line, []byte("python")) {
				all = append(all, pid)
			}
		}
	}
	s.rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	all = all[:(len(all)+1)/2]
	for _, pid := range all {
		_ = syscall.Kill(pid, what)
	}
	if after > 0 {
		<-time.After(after)
		for _, pid := range all {
			_ = syscall.Kill(pid, syscall.SIGCONT)
		}
	}
	return len(all) > 0
}

// descendants are the processes below one.
func descendants(pid int) (out []int) {
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	for _, file := range files {
		text, _ := os.ReadFile(file) // of a thread that has ended: nothing
		for _, child := range strings.Fields(string(text)) {
			if n, err := strconv.Atoi(child); err == nil {
				out = append(append(out, n), descendants(n)...)
			}
		}
	}
	return out
}

// unnamed are the objects that no manifest names yet: a worker that dies now leaves them behind.
func (s *storm) unnamed(t *testing.T) (keys []string) {
	t.Helper()
	r := s.h.record()
	all := r.keys(schema.RunPrefix(s.run)) // first: a manifest that comes now names what is there already
	named := map[string]bool{}
	for _, key := range r.keys(schema.ManifestsPrefix(s.run)) {
		text, err := os.ReadFile(r.path(key))
		require.NoError(t, err)
		m, err := schema.DecodeManifest(text)
		if err != nil {
			continue // it is being written
		}
		for _, x := range m.Shards {
			named[x.Key] = true
		}
		for _, c := range []*schema.Checkpoint{m.Checkpoint, m.Critic} {
			if c != nil {
				for _, f := range c.Files {
					named[c.Prefix+f.Name] = true
				}
			}
		}
	}
	for _, key := range all {
		data := slices.ContainsFunc([]string{"/table=", "/checkpoints/", "/segments/"}, func(part string) bool {
			return strings.Contains(key, part)
		})
		if data && !named[key] && !strings.Contains(key, "timings") && !strings.HasSuffix(key, "pruned.json") {
			keys = append(keys, key)
		}
	}
	return keys
}

// damage damages what no manifest names yet, and kills the worker.
func (s *storm) damage(t *testing.T, how string) bool {
	t.Helper()
	for range 200 { // looks; most moments have such objects soon
		worker := s.parts(t).Parts["worker"]
		if worker <= 0 || syscall.Kill(worker, syscall.SIGSTOP) != nil {
			return false
		}
		if len(s.unnamed(t)) > 0 {
			<-time.After(500 * time.Millisecond) // the server ends what the worker has asked for
		}
		if keys := s.unnamed(t); len(keys) > 0 {
			for _, key := range keys {
				require.NoError(t, s.spoil(s.h.record().path(key), how))
			}
			return syscall.Kill(worker, syscall.SIGKILL) == nil
		}
		_ = syscall.Kill(worker, syscall.SIGCONT)
		<-time.After(15 * time.Millisecond)
	}
	return false
}

// spoil changes a file in place, so that the server's attributes of it stay.
func (s *storm) spoil(path, how string) error {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil // the server has moved it meanwhile
	}
	switch {
	case err != nil:
		return err
	case how == "delete":
		return os.Remove(path)
	case how == "halve" || info.Size() == 0:
		return os.Truncate(path, info.Size()/2)
	case how == "empty":
		return os.Truncate(path, 0)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	at, one := s.rng.Int64N(info.Size()), make([]byte, 1)
	if _, err := f.ReadAt(one, at); err != nil {
		return err
	}
	one[0] ^= 0x5a
	_, err = f.WriteAt(one, at)
	return err
}

// plant puts damaged objects where the run will write, as a broken attempt leaves them.
func (s *storm) plant(t *testing.T) bool {
	t.Helper()
	r := s.h.record()
	var free []string
	for _, key := range r.keys(schema.RunPrefix(s.calm)) {
		own := schema.RunPrefix(s.run) + strings.TrimPrefix(key, schema.RunPrefix(s.calm))
		if strings.Contains(key, "/table=") && !strings.Contains(key, "timings") && !r.has(own) {
			free = append(free, own)
		}
	}
	s.rng.Shuffle(len(free), func(i, j int) { free[i], free[j] = free[j], free[i] })
	free = slices.Clone(free[:min(3, len(free))])
	for _, key := range free {
		path := r.path(key)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		text := [][]byte{nil, []byte("garbage"), append([]byte("PAR1"), make([]byte, 200)...)}[s.rng.IntN(3)]
		require.NoError(t, os.WriteFile(path, text, 0o600))
		// where the server keeps its notes as attributes of the file
		_ = syscall.Setxattr(path, "user.etag", []byte(`"00000000000000000000000000000000"`), 0)
		_ = syscall.Setxattr(path, "user.content-type", []byte("application/octet-stream"), 0)
	}
	return len(free) > 0
}
