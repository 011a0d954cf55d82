package stack

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// maxDeaths is how many supervisors of a server may die one after the other before it is healthy.
const maxDeaths = 5

// await waits until a server is healthy. If it has no supervisor, await starts one.
func (l *Lease) await(ctx context.Context, u *use) (state, error) {
	// awaited is the process id of the supervisor whose failure counts. One that had failed before we came is not ours:
	// it may still live for a moment, or have left its failure behind.
	awaited := 0
	for deaths := 0; ; {
		alive, s, err := l.look(u)
		switch {
		case err != nil:
			return s, err
		case alive && s.Healthy:
			u.joined, u.since = s.PID, time.Now()
			return s, nil
		case s.Failure != nil && s.PID == awaited:
			return s, s.Failure.err()
		case alive:
			if s.Failure == nil {
				awaited = s.PID
			}
		case deaths == maxDeaths:
			log := l.files.supervisorLog()
			return s, fmt.Errorf("join the local stack: the supervisor of %s died %d times\nthe end of %s:\n%s",
				titles[u.server], deaths, log, logTail(log, 0))
		default:
			deaths++
			if awaited, err = l.start(ctx, u.server); err != nil {
				return s, err
			}
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return s, fmt.Errorf("join the local stack: %w", ctx.Err())
		}
	}
}

// look reads what a supervisor tells, and shows the lines of progress that are new.
func (l *Lease) look(u *use) (alive bool, s state, err error) {
	if alive, err = l.files.supervised(u.server); err != nil { // first: what it tells then is never older
		return alive, s, err
	}
	if s, err = l.files.readState(u.server); err != nil {
		return alive, s, err
	}
	if s.PID != u.told {
		u.told, u.lines = s.PID, 0
	}
	for _, line := range s.since(u.lines) {
		l.opts.Progress(line)
	}
	u.lines = s.Lines
	return alive, s, nil
}

// start starts a detached supervisor, unless another command has started one meanwhile. It waits until the supervisor
// is alive or has told why it failed, and returns its process id, or 0 if it is another command's.
func (l *Lease) start(ctx context.Context, server string) (pid int, err error) {
	starting, err := takeLock(ctx, l.files.starting(server), owned)
	if err != nil {
		return 0, fmt.Errorf("start the local stack: %w", err)
	}
	defer starting.close()
	if alive, err := l.files.supervised(server); err != nil || alive {
		return 0, err
	}
	if err := l.files.checkSpace(); err != nil {
		return 0, err
	}
	log, offset, err := openLog(l.files.supervisorLog())
	if err != nil {
		return 0, err
	}
	defer log.Close()
	cmd, err := l.supervisor(server, log)
	if err != nil {
		return 0, err
	}
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the stack's supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		if alive, err := l.files.supervised(server); err != nil || alive {
			return cmd.Process.Pid, err
		}
		select {
		case <-ended:
			if s, err := l.files.readState(server); err == nil && s.PID == cmd.Process.Pid && s.Failure != nil {
				return s.PID, nil
			}
			return 0, fmt.Errorf("start the stack's supervisor: %s\nthe end of %s:\n%s",
				cmd.ProcessState, l.files.supervisorLog(), logTail(l.files.supervisorLog(), offset))
		case <-ctx.Done(): // once the command no longer uses the server, its supervisor ends by itself
			return 0, fmt.Errorf("start the stack's supervisor: %w", ctx.Err())
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// supervisor makes the command that starts a supervisor.
func (l *Lease) supervisor(server string, log *os.File) (*exec.Cmd, error) {
	text, err := json.Marshal(order{Server: server, Options: l.opts, Addresses: l.Addresses()})
	if err != nil {
		return nil, fmt.Errorf("encode options: %w", err)
	}
	cmd := exec.Command(l.opts.Supervisor[0], l.opts.Supervisor[1:]...)
	cmd.Env = append(os.Environ(), orderVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	// The supervisor gets a session of its own: Ctrl-C in the terminal goes to the command only, whose lease then ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	return cmd, nil
}
