// Package cluster starts the servers and machines of a cluster in miniature, for the tests in test/cluster and for the
// benchmark of Temporal.
//
// A *machine* is a network namespace with an address of its own; all machines of a *network* are connected by a switch,
// from which one can be cut off. A *unit* is a process that is started again whenever it ends, as systemd does with
// Restart=always. StartPostgres and StartTemporal make units of the real programs.
package cluster

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/testing/transcript"
)

// restartAfter is the pause before a unit that has ended is started again. The units of deploy/systemd wait longer.
const restartAfter = time.Second

// startedAgain is the line between what a unit has written before and after a start.
const startedAgain = "--- started again\n"

// Unit is a process that is started again whenever it ends, until Stop. Its methods are safe for concurrent use.
type Unit struct {
	Name string

	mu      sync.Mutex
	command func() *exec.Cmd
	process *exec.Cmd // nil while it is down
	starts  int
	said    transcript.Transcript // since its first start
	stopped bool
	changed *sync.Cond
}

// StartUnit starts a unit. command makes its command line for each start.
func StartUnit(name string, command func() *exec.Cmd) *Unit {
	u := &Unit{Name: name, command: command}
	u.changed = sync.NewCond(&u.mu)
	go u.supervise()
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.starts == 0 {
		u.changed.Wait()
	}
	return u
}

// supervise starts the process again and again. The kernel kills the process when the thread that started it ends, so
// the thread stays.
func (u *Unit) supervise() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	for {
		if cmd := u.begin(); cmd != nil {
			_ = cmd.Wait() // what it said tells more than its status
		}
		u.mu.Lock()
		u.process = nil
		u.changed.Broadcast()
		u.mu.Unlock()
		time.Sleep(restartAfter)
	}
}

// begin waits until the unit is wanted, and starts its process. It returns nil if the process cannot be started.
func (u *Unit) begin() *exec.Cmd {
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.stopped {
		u.changed.Wait()
	}
	defer u.changed.Broadcast()
	u.starts++
	if u.starts > 1 {
		fmt.Fprint(&u.said, startedAgain)
	}
	cmd := u.command()
	cmd.Stdout, cmd.Stderr = &u.said, &u.said
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, syscall.SIGKILL
	if err := cmd.Start(); err != nil {
		fmt.Fprintln(&u.said, err)
		return nil
	}
	u.process = cmd
	return cmd
}

// PID returns the id of the process, or 0 while there is none.
func (u *Unit) PID() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.process == nil {
		return 0
	}
	return u.process.Process.Pid
}

// Said returns what the process has written since its latest start.
func (u *Unit) Said() string {
	starts := strings.Split(u.said.String(), startedAgain)
	return starts[len(starts)-1]
}

// Log returns what the process has written since its first start.
func (u *Unit) Log() string { return u.said.String() }

// Kill kills the process and all that it has started. The unit starts it again.
func (u *Unit) Kill() error { return u.Signal(syscall.SIGKILL) }

// Signal sends a signal to the process; SIGKILL also to all that it has started.
func (u *Unit) Signal(s syscall.Signal) error {
	pid := u.PID()
	if pid == 0 {
		return fmt.Errorf("signal %s: it is down", u.Name)
	}
	if s == syscall.SIGKILL {
		pid = -pid
	}
	if err := syscall.Kill(pid, s); err != nil {
		return fmt.Errorf("signal %s: %w", u.Name, err)
	}
	return nil
}

// Stop ends the process with a signal and leaves it down. It kills the process if that takes longer than within.
func (u *Unit) Stop(s syscall.Signal, within time.Duration) error {
	u.mu.Lock()
	u.stopped = true
	up := u.process
	u.mu.Unlock()
	if up == nil {
		return nil
	}
	if err := u.Signal(s); err != nil && !errors.Is(err, syscall.ESRCH) {
		return err
	}
	late := time.AfterFunc(within, func() { _ = u.Kill() })
	defer late.Stop()
	u.mu.Lock()
	defer u.mu.Unlock()
	for u.process != nil {
		u.changed.Wait()
	}
	return nil
}

// Resume starts a stopped unit, with another command if it is not nil.
func (u *Unit) Resume(command func() *exec.Cmd) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if command != nil {
		u.command = command
	}
	was := u.starts
	u.stopped = false
	u.changed.Broadcast()
	for u.starts == was {
		u.changed.Wait()
	}
}
