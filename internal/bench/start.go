package bench

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"time"
)

// Started is a program that runs until it is stopped.
type Started struct {
	cmd  *exec.Cmd
	done chan error
}

// Start starts the program and waits until it writes a line that matches; nil waits for nothing. It returns what the
// expression's group matched. What the program writes before and after that is passed over, unless it is not waited
// for: then its standard error goes to Progress. The caller stops the program. One whose context ends is interrupted.
func (p Program) Start(ctx context.Context, ready *regexp.Regexp, args ...string) (*Started, string, error) {
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Env, cmd.Stderr = p.Env, p.Progress
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = time.Minute
	read, write := io.Pipe()
	if ready != nil {
		cmd.Stdout, cmd.Stderr = write, write
	}
	if err := cmd.Start(); err != nil {
		return nil, "", fmt.Errorf("start %s: %w", p.called(args), err)
	}
	s := &Started{cmd, make(chan error, 1)}
	go func() {
		s.done <- cmd.Wait()
		close(s.done)
		write.Close()
	}()
	if ready == nil {
		return s, "", nil
	}
	lines, last := bufio.NewScanner(read), ""
	for lines.Scan() {
		last = lines.Text()
		if found := ready.FindStringSubmatch(last); found != nil {
			go func() { _, _ = io.Copy(io.Discard, read) }() // until it ends
			return s, found[1], nil
		}
	}
	read.Close()
	_ = s.Stop() // its last line says more
	if err := lines.Err(); err != nil {
		return nil, "", fmt.Errorf("read the output of %s: %w", p.called(args), err)
	}
	return nil, "", fmt.Errorf("%s ended before it was ready: %s", p.called(args), last)
}

// Stop interrupts the program and waits for its end.
func (s *Started) Stop() error {
	_ = s.cmd.Process.Signal(os.Interrupt) // it may have ended by itself
	if err := <-s.done; err != nil {
		return fmt.Errorf("%s: %w", strings.Join(s.cmd.Args, " "), err)
	}
	return nil
}

// Kill ends the program at once, and waits for its end.
func (s *Started) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.done
}

// PID is the number of the program's process.
func (s *Started) PID() int { return s.cmd.Process.Pid }
