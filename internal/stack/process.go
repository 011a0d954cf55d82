package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// spawner starts child processes that the kernel kills when this process dies. The kernel's signal is tied to the
// *thread* that forked, so all starts happen on one thread that never ends.
type spawner struct {
	work chan func()

	mu    sync.Mutex   // held while a child is started, so that adopt never takes a new child for an orphan
	known map[int]bool // children that os/exec waits for
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), known: map[int]bool{}}
	go func() {
		runtime.LockOSThread()
		for f := range s.work {
			f()
		}
	}()
	return s
}

// process is a child that was started, in its own process group.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed when it has ended
	err     error         // why, once done; nil for exit status 0
	stopped bool          // by stop, before it ended by itself
}

// start starts the command with its output going to log. Files that a private command makes are accessible to this user
// only.
func (s *spawner) start(cmd *exec.Cmd, log *os.File, private bool) (*process, error) {
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.mu.Lock()
	defer s.mu.Unlock()
	result := make(chan error)
	s.work <- func() { result <- s.fork(cmd, private) }
	if err := <-result; err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, started: time.Now(), done: make(chan struct{})}
	s.known[p.pid()] = true
	go func() {
		p.err = cmd.Wait()
		s.mu.Lock()
		delete(s.known, p.pid())
		s.mu.Unlock()
		close(p.done)
	}()
	return p, nil
}

// fork starts a child; a private child gets a strict umask. The umask is that of this process: starts happen one after
// the other, and files that this process makes in the meantime are private anyway.
func (s *spawner) fork(cmd *exec.Cmd, private bool) error {
	if !private {
		return cmd.Start()
	}
	defer unix.Umask(unix.Umask(0o077))
	return cmd.Start()
}

func (p *process) pid() int { return p.cmd.Process.Pid }

func (p *process) hasEnded() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// how describes how the process ended.
func (p *process) how() string {
	if p.err == nil {
		return "exit status 0"
	}
	return p.err.Error()
}

// killed reports whether the process was ended by a signal that no fault in a program raises.
func (p *process) killed() bool {
	var exit *exec.ExitError
	if !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	if !ok || !status.Signaled() {
		return false
	}
	switch status.Signal() {
	case unix.SIGKILL, unix.SIGTERM, unix.SIGINT, unix.SIGHUP, unix.SIGQUIT:
		return true
	}
	return false
}

// stop ends the process: SIGTERM to the process, then SIGKILL to its whole group after the grace time.
func (p *process) stop(grace time.Duration) {
	p.stopped = !p.hasEnded()
	_ = p.cmd.Process.Signal(syscall.SIGTERM) // fails only if it has ended
	select {
	case <-p.done:
	case <-time.After(grace):
	}
	p.killGroup()
	<-p.done
}

// killGroup kills what is left of the process group, if anything.
func (p *process) killGroup() { _ = unix.Kill(-p.pid(), unix.SIGKILL) }

// becomeSubreaper makes orphaned descendants children of this process, so that none escapes.
func becomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// adopt reaps orphans that became our children and have ended; with kill it also ends the others.
func (s *spawner) adopt(kill bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	procs := readProcesses()
	for _, pid := range procs.children[os.Getpid()] {
		if s.known[pid] {
			continue
		}
		if kill {
			killTree(procs, pid)
		}
		// adopt does not wait for a live orphan; one that was just killed is reaped by the next call.
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

func killTree(procs processTable, pid int) {
	_ = unix.Kill(pid, unix.SIGKILL)
	for _, child := range procs.children[pid] {
		killTree(procs, child)
	}
}
