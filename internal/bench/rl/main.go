// Package rl measures the value, cotangents and statistics of every loss of package rl/loss, over 256 rows of 4,096
// tokens in float32. If it finds a Python with torch (ROPEWALK_PYTHON, else python3), it measures PyTorch's forward and
// backward of the same loss, with the same masks and statistics, in the same run. It runs from the repository's root.
//
// Glossary. *Tokens* are those under the mask. Both sides use one thread. They take turns, so that other load on the
// machine affects both. Rates are medians.
package rl

import (
	"context"
	_ "embed"
	"encoding/binary"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
	"github.com/ropewalk/ropewalk/rl/loss"
)

// Case measures the losses.
var Case = bench.Case{Name: "rl", Doc: "the losses next to PyTorch", New: newCase}

func newCase(flags *flag.FlagSet) func(context.Context, *bench.Report) error {
	rounds := flags.Int("rounds", 7, "measurements of each side")
	rows := flags.Int("rows", 256, "rows of the batch")
	length := flags.Int("length", 4096, "tokens of a row")
	return func(ctx context.Context, r *bench.Report) error {
		batch := losstest.New[float32](rand.New(rand.NewPCG(1, 2)), *rows, *length, losstest.Spread{Drift: 0.1})
		p, err := startPeer(ctx, r.Dir, batch)
		if err != nil {
			r.Note("without PyTorch to compare with", "%v", err)
		}
		defer p.stop()
		for _, c := range losstest.Cases() {
			found, err := compare(ctx, c, batch, p, *rounds)
			if err != nil {
				return fmt.Errorf("measure %s: %w", c.Name, err)
			}
			r.Add(c.Name, found...)
		}
		scaling, err := scale(ctx, batch, *rounds)
		r.Add("PPO on two cores", bench.Of("rate ÷ that on one", scaling))
		return err
	}
}

// goRepeats is the number of evaluations in one of our measurements: PyTorch takes several times as long.
const goRepeats = 8

// compare measures one loss on both sides in turn, and only on ours without a peer.
func compare(ctx context.Context, c losstest.Case, b losstest.Batch[float32], p *peer, rounds int) (
	out []bench.Figure, err error) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	once, tokens, err := losstest.Once(c, b, new(loss.Evaluator[float32]))
	if err != nil {
		return nil, err
	}
	sides := []bench.Side[float64]{side("Go", once, tokens)}
	if p != nil {
		sides = append(sides, bench.Side[float64]{Name: "PyTorch", Measure: func(ctx context.Context) (float64, error) {
			seconds, err := p.measure(ctx, c, b)
			return float64(tokens) / seconds, err
		}})
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), sides...)
	if err != nil {
		return nil, err
	}
	ours := bench.Median(found[0])
	out = []bench.Figure{bench.Of("Go tok/s", ours)}
	if p != nil {
		theirs := bench.Median(found[1])
		out = append(out, bench.Of("PyTorch tok/s", theirs), bench.Of("Go ÷ PyTorch", ours/theirs))
	}
	return out, nil
}

// side is one that evaluates a loss in this process, several times in a measurement. It measures tokens per second.
func side(name string, once func() error, tokens int64) bench.Side[float64] {
	return bench.Side[float64]{Name: name, Measure: func(context.Context) (float64, error) {
		began := time.Now()
		for range goRepeats {
			if err := once(); err != nil {
				return 0, err
			}
		}
		return goRepeats * float64(tokens) / time.Since(began).Seconds(), nil
	}}
}

// scale is PPO's rate with two goroutines over that with one.
func scale(ctx context.Context, b losstest.Batch[float32], rounds int) (float64, error) {
	ppo := losstest.Cases()[0]
	one, tokens, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 1})
	if err != nil {
		return 0, err
	}
	two, _, err := losstest.Once(ppo, b, &loss.Evaluator[float32]{Workers: 2})
	if err != nil {
		return 0, err
	}
	found, err := bench.TakeTurns(ctx, bench.Rounds(rounds), side("one worker", one, tokens),
		side("two workers", two, tokens))
	if err != nil {
		return 0, err
	}
	return bench.Ratio(found[1], found[0]), nil
}

//go:embed peer.py
var peerScript string

// formulas is the folder of parity.py, whose formulas the peer measures.
const formulas = "rl/loss/testdata"

// peer is a Python process that holds the batch and measures one loss for each line.
type peer struct {
	process *bench.Peer
	dir     string
	sent    map[string]bool // the losses whose marks the peer has
}

// startPeer writes the batch as arrays into a folder and starts Python on them. A nil peer may be stopped.
func startPeer(ctx context.Context, dir string, b losstest.Batch[float32]) (*peer, error) {
	interpreter, err := python.Find(ctx, "torch")
	if err != nil {
		return nil, err
	}
	p := &peer{dir: dir, sent: map[string]bool{}}
	if err := p.writeBatch(b); err != nil {
		return nil, err
	}
	p.process, err = bench.StartScript(ctx, "PyTorch", exec.Command(interpreter), peerScript, dir, formulas,
		fmt.Sprint(len(b.Rows)))
	if err != nil {
		return nil, err
	}
	return p, nil
}

func (p *peer) stop() {
	if p == nil {
		return
	}
	if _, err := p.process.Close(); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func (p *peer) writeBatch(b losstest.Batch[float32]) error {
	fields := map[string]func(i int) []float32{
		"logp":      func(i int) []float32 { return b.Rows[i].LogProbs },
		"old":       func(i int) []float32 { return b.Rows[i].Old },
		"adv":       func(i int) []float32 { return b.Rows[i].Advantages },
		"ref":       func(i int) []float32 { return b.Rows[i].Ref },
		"entropy":   func(i int) []float32 { return b.Rows[i].Entropies },
		"mask":      func(i int) []float32 { return floats(b.Rows[i].Mask) },
		"value":     func(i int) []float32 { return b.Values[i].Values },
		"value_old": func(i int) []float32 { return b.Values[i].Old },
		"returns":   func(i int) []float32 { return b.Values[i].Returns },
	}
	for name, of := range fields {
		if err := p.write(name, len(b.Rows), of); err != nil {
			return err
		}
	}
	return nil
}

func floats(mask []int32) []float32 {
	out := make([]float32, len(mask))
	for t, m := range mask {
		out[t] = float32(m)
	}
	return out
}

// write puts one array into the peer's folder as little-endian float32.
func (p *peer) write(name string, rows int, of func(i int) []float32) (err error) {
	var data []byte
	for i := range rows {
		if data, err = binary.Append(data, binary.LittleEndian, of(i)); err != nil {
			return err
		}
	}
	return os.WriteFile(filepath.Join(p.dir, name), data, 0o600)
}

// measure returns the seconds of one forward and backward of a loss.
func (p *peer) measure(ctx context.Context, c losstest.Case, b losstest.Batch[float32]) (float64, error) {
	job := map[string]any{"name": c.Name, "params": c.Params()}
	if !p.sent[c.Name] {
		rows, _, err := losstest.Planned(c, b)
		if err != nil {
			return 0, err
		}
		if rows[0].Marks != nil {
			job["marks"] = "marks_" + c.Name
			marks := func(i int) []float32 { return floats(rows[i].Marks) }
			if err := p.write("marks_"+c.Name, len(rows), marks); err != nil {
				return 0, err
			}
		}
		p.sent[c.Name] = true
	}
	var seconds float64
	err := p.process.Ask(ctx, job, &seconds)
	return seconds, err
}
