package fleet

import (
	"context"
	"errors"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/internal/testing/launch"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/servers"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

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
	return m, errors.Join(work.WriteGGUF(m.gguf, "policy", c), c.Close())
}

// atOnce is how many responses a server generates at once.
const atOnce = 4

// program is a kind of server.
type program struct {
	kind    string
	command func(m model, port string) []string
	// variables are added to its environment; nil: none are.
	variables func(m model) []string
}

func ropewalkServe(binary string) program {
	return program{kind: servers.KindRopewalk, command: func(m model, port string) []string {
		return []string{binary, "serve", m.folder, "--listen", "127.0.0.1:" + port, "--threads", "1", "--rows",
			strconv.Itoa(atOnce), "--name", "policy"}
	}}
}

func llamaServer(binary string) program {
	return program{kind: servers.KindLlama, command: func(m model, port string) []string {
		return []string{binary, "-m", m.gguf, "--alias", "policy", "--host", "127.0.0.1", "--port", port, "--threads",
			"1", "--parallel", strconv.Itoa(atOnce), "--ctx-size", strconv.Itoa(atOnce * benchShape.Positions),
			"--no-warmup", "--cache-type-k", "f32", "--cache-type-v", "f32", "-fa", "off", "--log-disable"}
	}}
}

// start starts a server and waits until it answers.
func (p program) start(ctx context.Context, m model) (*launch.Server, error) {
	var variables []string
	if p.variables != nil {
		variables = p.variables(m)
	}
	return launch.StartReady(ctx, p.kind, "/health", variables,
		func(port string) []string { return p.command(m, port) })
}

// moment is the length of one of the ten moments of which a slow server works in one.
const moment = 10 * time.Millisecond

// slow slows the server to a tenth until ctx ends.
func slow(ctx context.Context, s *launch.Server) {
	for ctx.Err() == nil {
		s.Signal(syscall.SIGSTOP)
		time.Sleep(9 * moment)
		s.Signal(syscall.SIGCONT)
		time.Sleep(moment)
	}
}
