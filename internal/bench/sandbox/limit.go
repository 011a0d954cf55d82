package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"
)

// limitScript forks warm interpreters with nothing around them.
var limitScript = filepath.Join("sandbox", "bench", "limit.py")

// limit is the script as a process: a line of seconds in, a line of figures out.
type limit struct {
	command *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
}

// startLimit starts as many warm interpreters as the sandbox has, of the same kind.
func (b *benchmark) startLimit(ctx context.Context) (side, error) {
	start, err := b.executor.Start(b.packages)
	if err != nil {
		return side{}, err
	}
	settings, err := json.Marshal(map[string]any{"zygotes": b.executor.Workers(), "path": append([]string{}, start.Path...), "warm_up": start.WarmUp,
		"program": b.call.Code, "output": b.output})
	if err != nil {
		return side{}, err
	}
	l := &limit{command: exec.CommandContext(ctx, start.Python, append(start.Flags, limitScript, string(settings))...)}
	l.command.Env, l.command.Stderr = start.Environment, os.Stderr
	if l.in, err = l.command.StdinPipe(); err != nil {
		return side{}, err
	}
	stdout, err := l.command.StdoutPipe()
	if err != nil {
		return side{}, err
	}
	l.out = bufio.NewReader(stdout)
	if err := l.command.Start(); err != nil {
		return side{}, fmt.Errorf("start the limit: %w", err)
	}
	if _, err := l.measure(ctx, 0); err != nil { // until it is warm
		return side{}, errors.Join(err, l.close())
	}
	return side{name: theLimit, measure: l.measure, close: l.close}, nil
}

func (l *limit) measure(_ context.Context, least time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(l.in, least.Seconds()); err != nil {
		return 0, fmt.Errorf("order %s: %w", limitScript, err)
	}
	line, err := l.out.ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("read the answer of %s: %w", limitScript, err)
	}
	var answer struct {
		CallsPerS float64 `json:"calls_per_s"`
	}
	if err := json.Unmarshal(line, &answer); err != nil {
		return 0, fmt.Errorf("read the answer of %s: %w", limitScript, err)
	}
	return answer.CallsPerS, nil
}

func (l *limit) close() error {
	l.in.Close()
	return l.command.Wait()
}
