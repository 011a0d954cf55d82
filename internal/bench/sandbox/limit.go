package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/sandbox/zygote"
)

// limitScript forks warm interpreters with nothing around them.
var limitScript = filepath.Join("sandbox", "bench", "limit.py")

// limit is the script as a process: a line of seconds in, a line of figures out.
type limit struct {
	command   *exec.Cmd
	in        io.WriteCloser
	out       *bufio.Reader
	complaint bytes.Buffer // its standard error; read it when it has ended
}

// limitSettings are what the script is told.
type limitSettings struct {
	Zygotes int      `json:"zygotes"`
	Path    []string `json:"path"`
	WarmUp  string   `json:"warm_up"`
	Program string   `json:"program"`
	Output  string   `json:"output"`
}

// startLimit starts as many warm interpreters as the sandbox has, of the same kind.
func (b *benchmark) startLimit(ctx context.Context) (side, error) {
	start, err := b.executor.Start(b.packages)
	if err != nil {
		return side{}, err
	}
	return limitSide(ctx, start, limitSettings{Zygotes: b.executor.Workers(), Path: append([]string{}, start.Path...), WarmUp: start.WarmUp,
		Program: b.call.Code, Output: b.output})
}

func limitSide(ctx context.Context, start zygote.Start, told limitSettings) (side, error) {
	settings, err := json.Marshal(told)
	if err != nil {
		return side{}, err
	}
	l := &limit{command: exec.CommandContext(ctx, start.Python, append(start.Flags, limitScript, string(settings))...)}
	l.command.Env, l.command.Stderr = start.Environment, &l.complaint
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
		return side{}, err
	}
	return side{name: theLimit, measure: l.measure, close: l.close}, nil
}

// measure closes the script where it fails, and then tells what it said.
func (l *limit) measure(_ context.Context, least time.Duration) (float64, error) {
	if _, err := fmt.Fprintln(l.in, least.Seconds()); err != nil {
		return 0, fmt.Errorf("order %s: %w", limitScript, errors.Join(err, l.close()))
	}
	line, err := l.out.ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("read the answer of %s: %w", limitScript, errors.Join(err, l.close()))
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
	if err := l.command.Wait(); err != nil {
		return fmt.Errorf("%s: %w: %s", limitScript, err, strings.TrimSpace(l.complaint.String()))
	}
	return nil
}
