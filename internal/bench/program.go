package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
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
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, p.Path, args...)
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, p.Env
	if p.Progress != nil {
		cmd.Stderr = p.Progress
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(os.Interrupt) }
	cmd.WaitDelay = grace
	called := strings.Join(append([]string{p.Path}, args...), " ")
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s: %w%s", called, err, tail(stderr.String()))
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(stdout.Bytes(), into); err != nil {
		return fmt.Errorf("read what %s printed: %w", called, err)
	}
	return nil
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
