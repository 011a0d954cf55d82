package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Program is the command whose work is measured.
type Program struct {
	Path string
	// Progress takes what the program writes to its standard error. Where it is nil an error ends with
	// the last lines of that instead.
	Progress io.Writer
	Env      []string // its environment; nil: that of this process
}

// Run runs the program and decodes the one JSON object that it prints; what it prints for a nil into is
// passed over. A program whose context ends is interrupted, so that it stops what it has started.
func (p Program) Run(ctx context.Context, into any, args ...string) error {
	text, err := p.Output(ctx, args...)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal([]byte(text), into); err != nil {
		return fmt.Errorf("read what %s printed: %w", p.called(args), err)
	}
	return nil
}

// Train runs a recipe with changes, each path=value, and decodes what the program prints about the run.
func (p Program) Train(ctx context.Context, into any, recipe string, set ...string) error {
	args := []string{"run", recipe, "--json"}
	for _, change := range set {
		args = append(args, "--set", change)
	}
	return p.Run(ctx, into, args...)
}

// Query decodes the rows of a query of the record in SQL.
func (p Program) Query(ctx context.Context, rows any, query string) error {
	return p.Run(ctx, &struct {
		Rows any `json:"rows"`
	}{rows}, "sql", "--json", query)
}

// Output runs the program and returns what it prints.
func (p Program) Output(ctx context.Context, args ...string) (string, error) {
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, p.Env
	if p.Progress != nil {
		cmd.Stderr = p.Progress
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s: %w%s", p.called(args), err, tail(stderr.String()))
	}
	return stdout.String(), nil
}

// called is the command line, for errors.
func (p Program) called(args []string) string {
	return strings.Join(append([]string{p.Path}, args...), " ")
}

// tail is the end of a program's messages, each on a line of its own.
func tail(text string) string {
	text = strings.TrimSpace(text)
	if text == "" {
		return ""
	}
	lines := strings.Split(text, "\n")
	return "\n" + strings.Join(lines[max(0, len(lines)-8):], "\n")
}

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

// SandboxPython is the interpreter that the sandbox is measured with: the one that ROPEWALK_SANDBOX_PYTHON names, else
// the one that tools/sandbox-python.sh makes, else "", which leaves the choice to the sandbox.
func SandboxPython() string {
	if named := os.Getenv("ROPEWALK_SANDBOX_PYTHON"); named != "" {
		return named
	}
	made, err := filepath.Abs(filepath.Join(".tools", "sandbox-python", "bin", "python"))
	if err == nil {
		_, err = os.Stat(made)
	}
	if err != nil {
		return ""
	}
	return made
}
