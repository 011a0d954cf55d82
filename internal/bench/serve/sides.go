package serve

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/internal/pretrained"
	"github.com/ropewalk/ropewalk/internal/testing/launch"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/policy/tokenizer"
)

// model is what all sides serve.
type model struct {
	file   string // as it was published
	folder string // for our engine
	f32    string // a GGUF file with the same weights in float32
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
	if m.words, err = words(m.folder); err != nil {
		return m, err
	}
	return m, work.WriteGGUF(m.f32, "float32", c)
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

// loads are numbers of streams, of which servers have room for mostStreams.
var loads = []int{1, 4, mostStreams}

const mostStreams = 16

// contest is what is compared: sides that run at the same time and take turns.
type contest struct {
	m                           model
	w                           load
	binary, llamaPath, vllmPath string
	threads, rounds             int
	sides                       []side
	stops                       []func()
}

// stop ends the servers.
func (c *contest) stop() {
	for _, f := range c.stops {
		f()
	}
	c.stops = nil
}

// server starts a server and adds it to the sides.
func (c *contest) server(ctx context.Context, name string, d dialect, variables []string,
	arguments func(port string) []string) error {
	s, err := launch.StartReady(ctx, name, d.ready, variables, arguments)
	if err != nil {
		return err
	}
	c.stops = append(c.stops, s.Kill)
	c.sides = append(c.sides, c.w.server(name, s.URL, d))
	return nil
}

// ropewalk adds our server.
func (c *contest) ropewalk(ctx context.Context) error {
	return c.server(ctx, "ropewalk serve", ropewalk, nil, func(port string) []string {
		return []string{c.binary, "serve", c.m.folder, "--listen", "127.0.0.1:" + port, "--threads",
			strconv.Itoa(c.threads), "--rows", strconv.Itoa(mostStreams), "--name", "model"}
	})
}

// llama adds llama.cpp's server with a GGUF file.
func (c *contest) llama(ctx context.Context, name, file string) error {
	all := strconv.Itoa(mostStreams * (c.w.prompt + c.w.tokens + 16)) // tokens of all slots together
	return c.server(ctx, name, llama, nil, func(port string) []string {
		return []string{c.llamaPath, "-m", file, "--host", "127.0.0.1", "--port", port, "--threads",
			strconv.Itoa(c.threads), "--parallel", strconv.Itoa(mostStreams), "-c", all, "--log-disable"}
	})
}

// vllmVariables keep vLLM on the processor and on this machine.
var vllmVariables = []string{"VLLM_CPU_KVCACHE_SPACE=1", "VLLM_CPU_OMP_THREADS_BIND=nobind",
	"VLLM_HOST_IP=127.0.0.1", "GLOO_SOCKET_IFNAME=lo", "VLLM_NO_USAGE_STATS=1", "DO_NOT_TRACK=1", "HF_HUB_OFFLINE=1",
	"TRANSFORMERS_OFFLINE=1", "VLLM_LOGGING_LEVEL=ERROR"}

// vllm adds vLLM with the same weights in float32.
func (c *contest) vllm(ctx context.Context) error {
	variables := append([]string{"OMP_NUM_THREADS=" + strconv.Itoa(c.threads)}, vllmVariables...)
	return c.server(ctx, "vLLM, float32", vllm, variables, func(port string) []string {
		return []string{c.vllmPath, "serve", c.m.folder, "--host", "127.0.0.1", "--port", port, "--dtype", "float32",
			"--served-model-name", "model", "--generation-config", "vllm", "--max-num-seqs", strconv.Itoa(mostStreams),
			"--max-model-len", strconv.Itoa(c.w.prompt + c.w.tokens + 16)}
	})
}

// openEngine opens our engine with a model.
func openEngine(ctx context.Context, threads int, folder string) (policy.Engine, error) {
	e, err := cpu.Open(cpu.Options{Threads: threads})
	if err != nil {
		return nil, err
	}
	return e, e.Load(ctx, policy.RolePolicy, folder, false)
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
