package engine

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/bench/work"
	"github.com/ropewalk/ropewalk/policy"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
	"github.com/ropewalk/ropewalk/policy/cpu"
	"github.com/ropewalk/ropewalk/rl/optimizer"
)

// leastTurns is the least number of turns of each side.
const leastTurns = 5

// measure returns both sides' figures at one size. Without an interpreter it measures only ours.
func measure(ctx context.Context, interpreter string, j job, least time.Duration) (out []bench.Figure, err error) {
	self, err := startSelf(ctx, j)
	if err != nil {
		return nil, err
	}
	defer self.Kill()
	peers, names := []*bench.Peer{self}, []string{"", "PyTorch: "}
	if interpreter != "" {
		peer, err := startPeer(ctx, interpreter, j)
		if err != nil {
			return nil, err
		}
		defer peer.Kill()
		peers = append(peers, peer)
	}
	train, trainRatio, err := compare(ctx, peers, commandTrain, j.Train[0]*j.Train[1], least)
	if err != nil {
		return nil, err
	}
	generate, generateRatio, err := compare(ctx, peers, commandGenerate, j.Generate[0]*j.Generate[2], least)
	if err != nil {
		return nil, err
	}
	for i, p := range peers {
		peak, err := p.Close()
		if err != nil {
			return nil, err
		}
		out = append(out, bench.Of(names[i]+"train tok/s", train[i]),
			bench.Of(names[i]+"generate tok/s", generate[i]),
			bench.Of(names[i]+"peak MB", float64(peak)/1e6)) // of 10⁶ bytes
	}
	if len(peers) == 2 {
		out = append(out, bench.Of("train ÷ PyTorch", trainRatio), bench.Of("generate ÷ transformers", generateRatio))
	}
	return out, nil
}

// compare has each side warm up once, then run the command in turns for the least time, both together. It returns the
// medians of tokens per second, by side, and the median of the ratios of the first side's rate to the second's.
func compare(ctx context.Context, peers []*bench.Peer, command string, tokens int, least time.Duration) (
	medians []float64, ratio float64, err error) {
	var sides []bench.Side[float64]
	for _, p := range peers {
		side := bench.Side[float64]{Name: command, Measure: func(ctx context.Context) (rate float64, err error) {
			var seconds float64
			err = p.Ask(ctx, command, &seconds)
			return float64(tokens) / seconds, err
		}}
		if _, err := side.Measure(ctx); err != nil {
			return nil, 0, err
		}
		sides = append(sides, side)
	}
	rates, err := bench.TakeTurns(ctx, bench.AtLeast(leastTurns, least), sides...)
	if err != nil {
		return nil, 0, err
	}
	for _, of := range rates {
		medians = append(medians, bench.Median(of))
	}
	return medians, bench.Ratio(rates[0], rates[len(rates)-1]), nil
}

// job is the argument of a side.
type job struct {
	Threads  int              `json:"threads"`
	BLAS     string           `json:"blas"`
	Shape    checkpoint.Shape `json:"shape"`
	Train    [2]int           `json:"train"`
	Generate [3]int           `json:"generate"`
}

// The commands to a side, which answers each with the seconds that it took.
const (
	commandTrain    = "train"
	commandGenerate = "generate"
)

//go:embed peer.py
var peerScript string

// startSelf runs this program as the CPU engine's side, startPeer Python as PyTorch's.
func startSelf(ctx context.Context, j job) (*bench.Peer, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return bench.StartPeer(ctx, "the CPU engine's side", exec.Command(self, name, "-side", string(text)))
}

func startPeer(ctx context.Context, interpreter string, j job) (*bench.Peer, error) {
	text, err := json.Marshal(j)
	if err != nil {
		return nil, err
	}
	return bench.StartScript(ctx, "PyTorch's side", exec.Command(interpreter), peerScript, string(text))
}

// serve is the CPU engine's side: it answers commands until its input ends.
func serve(ctx context.Context, j job, in io.Reader, out io.Writer) error {
	engine, err := cpu.Open(cpu.Options{Threads: j.Threads, BLAS: j.BLAS})
	if err != nil {
		return err
	}
	defer engine.Close()
	if err := work.LoadRandom(ctx, engine, j.Shape); err != nil {
		return err
	}
	commands := map[string]func() error{commandTrain: trainStep(ctx, engine, j),
		commandGenerate: generateOnce(ctx, engine, j)}
	answers := json.NewEncoder(out)
	for questions := json.NewDecoder(in); ; {
		var command string
		if err := questions.Decode(&command); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("read a command: %w", err)
		}
		f, ok := commands[command]
		if !ok {
			return fmt.Errorf("no such command: %q", command)
		}
		began := time.Now()
		if err := f(); err != nil {
			return err
		}
		if err := answers.Encode(time.Since(began).Seconds()); err != nil {
			return err
		}
	}
}

// trainStep is one optimiser step of language modelling.
func trainStep(ctx context.Context, e policy.Engine, j job) func() error {
	rows := work.RandomRows(1, 2, j.Shape.Vocab, j.Train[0], j.Train[1])
	batch := work.MicroBatch{Rows: rows, Cotangents: work.LanguageModelling(rows, j.Train[0]*(j.Train[1]-1))}
	return func() error {
		if err := batch.Run(ctx, e); err != nil {
			return err
		}
		_, err := e.Step(
			ctx, policy.RolePolicy,
			policy.StepOptions{LR: 1e-4,
				Rule: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Epsilon: 1e-8, WeightDecay: 0.01}, ClipNorm: 1},
		)
		return err
	}
}

func generateOnce(ctx context.Context, e policy.Engine, j job) func() error {
	req := policy.GenerateRequest{
		Role: policy.RolePolicy, Prefixes: work.RandomRows(1, 2, j.Shape.Vocab, j.Generate[0], j.Generate[1]),
		Temperature: 1,
	}
	for i := range req.Prefixes {
		req.Streams = append(req.Streams, uint64(i))
		req.MaxTokens = append(req.MaxTokens, j.Generate[2])
	}
	return func() error {
		_, err := e.Generate(ctx, req)
		return err
	}
}
