package torch

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
)

// exit is how a child ends.
type exit struct {
	done chan struct{} // closed when it has ended and is buried
	err  error         // once done; nil for exit status 0
}

// spawn starts the command with its output in one pipe. The thread that forks waits for the child and does nothing
// else: the kernel kills the child when that thread ends, and Go's threads end when they like.
func spawn(cmd *exec.Cmd) (output *os.File, _ *exit, err error) {
	output, w, err := os.Pipe()
	if err != nil {
		return nil, nil, fmt.Errorf("make a pipe: %w", err)
	}
	cmd.Stdout, cmd.Stderr = w, w
	started, end := make(chan error), &exit{done: make(chan struct{})}
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		w.Close()
		started <- err
		if err == nil {
			end.err = cmd.Wait()
			close(end.done)
		}
	}()
	if err := <-started; err != nil {
		output.Close()
		return nil, nil, fmt.Errorf("start the engine: %w", err)
	}
	return output, end, nil
}
