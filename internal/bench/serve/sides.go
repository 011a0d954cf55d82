package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/gguf"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// startWithin is how long a server has to load its model.
const startWithin = 2 * time.Minute

// model is what all sides serve.
type model struct {
	file   string // as it was published
	folder string // for our engine
	f32    string // a GGUF file with the same weights in float32
	params int64
	words  [][]int32
}

// prepare converts the published file into the forms that the sides read, in a folder.
func prepare(file, dir string) (_ model, err error) {
	m := model{file: file, folder: filepath.Join(dir, "model"), f32: filepath.Join(dir, "f32.gguf")}
	if err := pretrained.Take(file, m.folder); err != nil {
		return m, fmt.Errorf("read %s: %w", file, err)
	}
	c, err := checkpoint.Open(m.folder, false)
	if err != nil {
		return m, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	m.params = c.Shape.Params()
	if m.words, err = words(m.folder); err != nil {
		return m, err
	}
	out := gguf.Model{Name: "float32", Checkpoint: c, Dtype: checkpoint.F32}
	out.Vocabulary.Split, out.Vocabulary.Start = "default", -1
	for id := range c.Shape.Vocab { // only ids are exchanged
		out.Vocabulary.Tokens = append(out.Vocabulary.Tokens, fmt.Sprintf("t%d", id))
	}
	f, err := os.Create(m.f32)
	if err != nil {
		return m, err
	}
	return m, errors.Join(gguf.Write(f, out), f.Close())
}

// words are the tokens of each word of the prompts' text.
func words(folder string) ([][]int32, error) {
	file, err := os.ReadFile(filepath.Join(folder, "tokenizer.json"))
	if err != nil {
		return nil, err
	}
	codec, err := tokenizer.Read(file)
	if err != nil {
		return nil, err
	}
	var out [][]int32
	for _, word := range strings.Fields(text) {
		out = append(out, codec.Encode(" "+word))
	}
	return out, nil
}

// places says where the programs are.
type places struct{ binary, llama string }

// sides are what is compared.
type sides struct {
	all    []side // our server is the first
	engine policy.Engine
}

// start starts the servers, and our engine in this process. stop ends them.
func start(ctx context.Context, m model, w load, at places, threads, streams int) (_ sides, stop func(), err error) {
	var stops []func()
	stop = func() {
		for _, f := range stops {
			f()
		}
	}
	defer func() {
		if err != nil {
			stop()
		}
	}()
	var s sides
	server := func(name string, d dialect, arguments func(port int) []string) error {
		url, end, err := serve(ctx, name, d.ready, arguments)
		if err != nil {
			return err
		}
		stops = append(stops, end)
		s.all = append(s.all, w.server(name, url, d))
		return nil
	}
	if err := server("ropewalk serve", ropewalk, func(port int) []string {
		return []string{at.binary, "serve", m.folder, "--listen", fmt.Sprint("127.0.0.1:", port), "--threads",
			strconv.Itoa(threads), "--rows", strconv.Itoa(streams), "--name", "model"}
	}); err != nil {
		return s, nil, err
	}
	context := strconv.Itoa(streams * (w.prompt + w.tokens + 16)) // of all slots together
	for _, f := range []struct{ name, file string }{
		{"llama-server, float32", m.f32}, {"llama-server, as published", m.file},
	} {
		if err := server(f.name, llama, func(port int) []string {
			return []string{at.llama, "-m", f.file, "--host", "127.0.0.1", "--port", strconv.Itoa(port), "--threads",
				strconv.Itoa(threads), "--parallel", strconv.Itoa(streams), "-c", context, "--log-disable"}
		}); err != nil {
			return s, nil, err
		}
	}
	s.engine, err = cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		return s, nil, err
	}
	stops = append(stops, func() { _ = s.engine.Close() }) // nothing is written
	if err := s.engine.Load(ctx, policy.RolePolicy, m.folder, false); err != nil {
		return s, nil, err
	}
	s.all = append(s.all, w.direct(s.engine))
	return s, stop, nil
}

// serve starts a server on a free port of this machine and waits until it is ready.
func serve(ctx context.Context, name, ready string, arguments func(port int) []string) (url string, stop func(),
	err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", nil, err
	}
	port := l.Addr().(*net.TCPAddr).Port
	if err := l.Close(); err != nil {
		return "", nil, err
	}
	line := arguments(port)
	cmd := exec.Command(line[0], line[1:]...)
	cmd.Stderr = os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return "", nil, fmt.Errorf("start %s: %w", name, err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	stop = func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) } // it may have ended
	url = fmt.Sprintf("http://127.0.0.1:%d", port)
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	for {
		select {
		case err := <-ended:
			return "", nil, fmt.Errorf("%s has ended: %v", name, err)
		case <-ctx.Done():
			stop()
			return "", nil, fmt.Errorf("%s is not ready after %s", name, startWithin)
		case <-time.After(100 * time.Millisecond):
		}
		if answers(ctx, url+ready) {
			return url, stop, nil
		}
	}
}

func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode == http.StatusOK
}

// direct is our engine without a server: the streams are the rows of one batch.
func (w load) direct(e policy.Engine) side {
	var seed uint64
	return side{"our engine alone", func(ctx context.Context, n int) (measured, error) {
		seed++
		req := policy.GenerateRequest{Role: policy.RolePolicy, Temperature: 1,
			Prefixes: w.prompts(rand.New(rand.NewPCG(seed, 0)), n)}
		for i := range n {
			req.Streams, req.MaxTokens = append(req.Streams, seed<<32|uint64(i)), append(req.MaxTokens, w.tokens)
		}
		began := time.Now()
		g, err := e.Generate(ctx, req)
		if err != nil {
			return measured{}, err
		}
		tokens := 0
		for _, row := range g.Tokens {
			tokens += len(row)
		}
		return measured{rate: float64(tokens) / time.Since(began).Seconds()}, nil
	}}
}
