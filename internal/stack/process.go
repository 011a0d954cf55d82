package stack

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is a child that was started, in its own process group.
type process struct {
	cmd     *exec.Cmd
	started time.Time
	done    chan struct{} // closed when it has ended
	err     error         // why, once done; nil for exit status 0
	stopped bool          // by stop, before it ended by itself
}

// startProcess starts the command with its output going to log. The kernel kills it when the thread that starts it
// ends, as this process does.
func startProcess(cmd *exec.Cmd, log *os.File) (*process, error) {
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, started: time.Now(), done: make(chan struct{})}
	go func() {
		p.err = cmd.Wait()
		close(p.done)
	}()
	return p, nil
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

// adoptOrphans reaps orphans that became our children and have ended; with kill it also ends the others. It leaves the
// child that os/exec waits for alone, if there is one. It does not wait for a live orphan; one that was just killed is
// reaped by the next call.
func adoptOrphans(own int, kill bool) {
	procs := readProcesses()
	for _, pid := range procs.children[os.Getpid()] {
		if pid == own {
			continue
		}
		if kill {
			killTree(procs, pid)
		}
		_, _ = unix.Wait4(pid, nil, unix.WNOHANG, nil)
	}
}

func killTree(procs processTable, pid int) {
	_ = unix.Kill(pid, unix.SIGKILL)
	for _, child := range procs.children[pid] {
		killTree(procs, child)
	}
}
