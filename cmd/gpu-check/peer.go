package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

//go:embed peer.py
var peerScript string

// peer is the process of the plain loop.
type peer struct {
	cmd    *exec.Cmd
	jobs   io.WriteCloser
	answer *bufio.Reader
	wrote  *lastBytes // to standard error
}

// errPeerMemory says that the plain loop did not fit the device's memory.
var errPeerMemory = errors.New("the plain loop ran out of memory")

type trainJob struct {
	Job           string           `json:"job"`
	Shape         checkpoint.Shape `json:"shape"`
	Row           int              `json:"row"`
	Microbatches  int              `json:"microbatches"`
	Checkpointing bool             `json:"checkpointing"`
	Loop          string           `json:"loop"`
	Steps         int              `json:"steps"`
	Seconds       float64          `json:"seconds"`
}

type trained struct {
	First float64   `json:"first"`
	Steps []float64 `json:"steps"`
	Peak  int64     `json:"peak"`
	Error string    `json:"error"`
}

type generateJob struct {
	Job     string           `json:"job"`
	Shape   checkpoint.Shape `json:"shape"`
	Batch   int              `json:"batch"`
	Prompt  int              `json:"prompt"`
	New     int              `json:"new"`
	Repeats int              `json:"repeats"`
}

type generatedIn struct {
	Seconds []float64 `json:"seconds"`
	Error   string    `json:"error"`
}

// withPeer gives the peer, started if there is none.
func (l *lab) withPeer(ctx context.Context) (*peer, error) {
	if l.peer != nil {
		return l.peer, nil
	}
	python, err := l.python()
	if err != nil {
		return nil, err
	}
	p := &peer{cmd: exec.Command(python, "-I", "-c", peerScript, l.o.device), wrote: &lastBytes{}}
	p.cmd.Stderr = p.wrote
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Dir = l.dir
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("OMP_NUM_THREADS=%d", l.threads()))
	if p.jobs, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the peer: %w", err)
	}
	p.answer, l.peer = bufio.NewReader(out), p
	var versions struct{ Torch, Transformers string }
	if err := l.hear(ctx, &versions); err != nil {
		return nil, fmt.Errorf("start the peer: %w", err)
	}
	l.versions["torch"], l.versions["transformers"] = versions.Torch, versions.Transformers
	return p, nil
}

// ask gives the peer a job and waits for its answer.
func (l *lab) ask(ctx context.Context, job, into any) error {
	p, err := l.withPeer(ctx)
	if err != nil {
		return err
	}
	line, err := json.Marshal(job)
	if err != nil {
		return err
	}
	if _, err := p.jobs.Write(append(line, '\n')); err != nil {
		return l.lostPeer(err)
	}
	return l.hear(ctx, into)
}

// hear reads an answer. A context that ends ends the peer.
func (l *lab) hear(ctx context.Context, into any) error {
	p := l.peer
	stop := context.AfterFunc(ctx, p.kill)
	line, err := p.answer.ReadBytes('\n')
	stop()
	if err != nil {
		if ctx.Err() != nil {
			err = ctx.Err()
		}
		return l.lostPeer(err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		return l.lostPeer(fmt.Errorf("read %q: %w", line, err))
	}
	return nil
}

func (l *lab) lostPeer(err error) error {
	p := l.peer
	l.endPeer()
	return fmt.Errorf("the peer is lost: %w; it wrote last:\n%s", err, p.wrote)
}

func (l *lab) endPeer() {
	if l.peer == nil {
		return
	}
	p := l.peer
	l.peer = nil
	_ = p.jobs.Close()
	p.kill()
	_ = p.cmd.Wait()
}

func (p *peer) kill() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }

// failure is an answer's error.
func failure(text string) error {
	switch text {
	case "":
		return nil
	case "out_of_memory":
		return errPeerMemory
	}
	return errors.New("the peer: " + text)
}

// lastBytes keeps the end of what is written.
type lastBytes struct {
	mu   sync.Mutex
	text []byte
}

func (b *lastBytes) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.text = append(b.text, p...)
	b.text = b.text[max(0, len(b.text)-2<<10):]
	return len(p), nil
}

func (b *lastBytes) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return strings.TrimSpace(string(b.text))
}
