package stack

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// readyVariable names the file to which a supervised worker writes its process id once it polls.
const readyVariable = "ROPEWALK_READY_FILE"

// workerCommand makes the command of the worker: this executable, with the addresses of the servers in its environment.
func (s *supervisor) workerCommand() (*exec.Cmd, error) {
	if err := os.Remove(s.files.readyFile()); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("remove the last worker's ready file: %w", err)
	}
	cmd := exec.Command(s.Options.Worker[0], s.Options.Worker[1:]...)
	cmd.Env = append(os.Environ(), s.Addresses.Env()...) // the last of two values counts
	cmd.Env = append(cmd.Env, readyVariable+"="+s.files.readyFile(), "ROPEWALK_HOME="+s.files.root)
	return cmd, nil
}

func (s *supervisor) probeWorker(_ context.Context, p *process) error {
	text, err := os.ReadFile(s.files.readyFile())
	if err != nil {
		return errors.New("its pollers are not up")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
	if err != nil {
		return fmt.Errorf("parse ready file: %w", err)
	}
	// The process group distinguishes a worker that a wrapper started from a stale file.
	if group, err := unix.Getpgid(pid); err != nil || group != p.pid() {
		return fmt.Errorf("process %d in the ready file is not this worker", pid)
	}
	return nil
}

// WorkerReady tells the supervisor that this worker's pollers are running. Without a supervisor it does nothing.
func WorkerReady() error {
	path := os.Getenv(readyVariable)
	if path == "" {
		return nil
	}
	return writeFile(path, []byte(strconv.Itoa(os.Getpid())+"\n"))
}
