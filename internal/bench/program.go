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
