package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// startWithin is how long a server has to load its model.
const startWithin = 10 * time.Minute

// benchShape is a model of 3 million parameters, whose generation takes much longer than requests do.
var benchShape = checkpoint.Shape{Architecture: checkpoint.Llama, Hidden: 256, Layers: 4, Heads: 4, KVHeads: 2,
	HeadDim: 64, FFN: 640, Vocab: 256, Positions: 1024, RopeTheta: 10000, NormEps: 1e-5, Pad: -1}

// model is one model in two forms.
type model struct{ folder, gguf string }

// writeModel writes a model that has learnt nothing.
func writeModel(dir string, shape checkpoint.Shape) (model, error) {
	m := model{folder: filepath.Join(dir, "policy"), gguf: filepath.Join(dir, "policy.gguf")}
	tokens, err := tokenizer.New(nil)
	if err != nil {
		return m, err
	}
	shape.Vocab = tokens.VocabSize()
	if err := checkpoint.Init(m.folder, shape, 1, tokens.Files()); err != nil {
		return m, err
	}
	c, err := checkpoint.Open(m.folder, false)
	if err != nil {
		return m, err
	}
	out := gguf.Model{Name: "policy", Checkpoint: c, Dtype: checkpoint.F32}
	out.Vocabulary.Split, out.Vocabulary.Start = "default", -1
	for id := range c.Shape.Vocab { // only ids are exchanged
		out.Vocabulary.Tokens = append(out.Vocabulary.Tokens, fmt.Sprintf("t%d", id))
	}
	f, err := os.Create(m.gguf)
	if err != nil {
		return m, errors.Join(err, c.Close())
	}
	return m, errors.Join(gguf.Write(f, out), f.Close(), c.Close())
}

// atOnce is how many responses a server generates at once.
const atOnce = 4

// program is a kind of server.
type program struct {
	kind    string
	command func(m model, port int) *exec.Cmd
}

func ropewalkServe(binary string) program {
	return program{servers.KindRopewalk, func(m model, port int) *exec.Cmd {
		return exec.Command(binary, "serve", m.folder, "--listen", fmt.Sprint("127.0.0.1:", port), "--threads", "1",
			"--rows", strconv.Itoa(atOnce), "--name", "policy")
	}}
}

func llamaServer(binary string) program {
	return program{servers.KindLlama, func(m model, port int) *exec.Cmd {
		return exec.Command(binary, "-m", m.gguf, "--alias", "policy", "--host", "127.0.0.1", "--port",
			strconv.Itoa(port), "--threads", "1", "--parallel", strconv.Itoa(atOnce), "--ctx-size",
			strconv.Itoa(atOnce*benchShape.Positions), "--no-warmup", "--cache-type-k", "f32", "--cache-type-v", "f32",
			"-fa", "off", "--log-disable")
	}}
}

// process is a server that runs.
type process struct {
	url   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// start starts a server and waits until it answers.
func (p program) start(ctx context.Context, m model) (*process, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return nil, err
	}
	s := &process{url: fmt.Sprintf("http://127.0.0.1:%d", port), cmd: p.command(m, port), ended: make(chan struct{})}
	s.cmd.Stderr = os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", p.kind, err)
	}
	go func() {
		_ = s.cmd.Wait() // kill ends it
		close(s.ended)
	}()
	for until := time.Now().Add(startWithin); ; {
		resp, err := http.Get(s.url + "/health")
		if err == nil {
			resp.Body.Close()
			if resp.StatusCode == http.StatusOK {
				return s, nil
			}
		}
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s has ended: %s", p.kind, s.cmd.ProcessState)
		case <-ctx.Done():
			s.kill()
			return nil, ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(until) {
			s.kill()
			return nil, fmt.Errorf("%s is not ready after %s", p.kind, startWithin)
		}
	}
}

// kill ends the server at once.
func (s *process) kill() {
	s.signal(syscall.SIGKILL)
	<-s.ended
}

// signal sends a signal to the server and what it has started.
func (s *process) signal(sig syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, sig) } // it may have ended

// moment is the length of one of the ten moments of which a slow server works in one.
const moment = 10 * time.Millisecond

// slow slows the server to a tenth until ctx ends.
func (s *process) slow(ctx context.Context) {
	for ctx.Err() == nil {
		s.signal(syscall.SIGSTOP)
		time.Sleep(9 * moment)
		s.signal(syscall.SIGCONT)
		time.Sleep(moment)
	}
}
