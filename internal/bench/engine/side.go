package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// job is what a side is told when it starts.
type job struct {
	Threads  int              `json:"threads"`
	BLAS     string           `json:"blas"`
	Shape    checkpoint.Shape `json:"shape"`
	Train    [2]int           `json:"train"`
	Generate [3]int           `json:"generate"`
}

// Commands to a side, one a line; it answers each with the cost as one line of JSON.
const (
	commandTrain    = "train"
	commandGenerate = "generate"
)

// cost is what one command took.
type cost struct {
	Seconds float64 `json:"seconds"`
	CPU     float64 `json:"cpu_seconds"` // of all threads
}

// side is a running process.
type side struct {
	cmd    *exec.Cmd
	to     io.WriteCloser
	from   *bufio.Reader
	stderr bytes.Buffer
}

//go:embed peer.py
var peerScript string

// startSelf runs this program as the CPU engine's side, startPeer Python as PyTorch's.
func startSelf(ctx context.Context, j job) (*side, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return start(ctx, j, self, "-side")
}

func startPeer(ctx context.Context, interpreter string, j job) (*side, error) {
	return start(ctx, j, interpreter, "-c", peerScript)
}

func start(ctx context.Context, j job, program string, args ...string) (*side, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	s := &side{cmd: exec.CommandContext(ctx, program, append(args, string(text))...)}
	s.cmd.Stderr = &s.stderr
	if s.to, err = s.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	from, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.from = bufio.NewReader(from)
	return s, s.cmd.Start()
}

// do runs one command.
func (s *side) do(command string) (cost, error) {
	if _, err := fmt.Fprintln(s.to, command); err != nil {
		return cost{}, s.failed(err)
	}
	line, err := s.from.ReadBytes('\n')
	if err != nil {
		return cost{}, s.failed(err)
	}
	var c cost
	return c, json.Unmarshal(line, &c)
}

func (s *side) failed(err error) error {
	_ = s.cmd.Wait()
	lines := strings.Split(strings.TrimSpace(s.stderr.String()), "\n")
	return fmt.Errorf("%s ended: %w: %s", s.cmd.Path, err, lines[len(lines)-1])
}

// end waits for the side's end and gives the most memory that was resident in it, in MB.
func (s *side) end() (float64, error) {
	s.to.Close()
	if err := s.cmd.Wait(); err != nil {
		return 0, err
	}
	usage, ok := s.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, fmt.Errorf("%s: the system tells no memory", s.cmd.Path)
	}
	return float64(usage.Maxrss) * 1024 / 1e6, nil // Linux counts in KiB
}
