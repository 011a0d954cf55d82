package rl

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/bench"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/internal/testing/losstest"
)

//go:embed peer.py
var peerScript string

// formulas is the folder of parity.py, whose formulas the peer measures.
const formulas = "rl/loss/testdata"

// peer is a Python process that holds the batch and measures one loss for each line.
type peer struct {
	process *bench.Peer // nil before it was started
	dir     string
	sent    map[string]bool // the losses whose marks the peer has
}

// startPeer writes the batch as arrays and starts Python on them. A nil peer may be stopped.
func startPeer(ctx context.Context, b losstest.Batch[float32]) (*peer, error) {
	interpreter, err := python.Find(ctx, "torch")
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "ropewalk-bench-")
	if err != nil {
		return nil, err
	}
	p := &peer{dir: dir, sent: map[string]bool{}}
	if err := p.writeBatch(b); err != nil {
		p.stop()
		return nil, err
	}
	if p.process, err = bench.StartScript(ctx, "PyTorch", exec.Command(interpreter), peerScript, dir, formulas,
		fmt.Sprint(len(b.Rows))); err != nil {
		p.stop()
		return nil, err
	}
	return p, nil
}

func (p *peer) stop() {
	if p == nil {
		return
	}
	if p.process != nil {
		if _, err := p.process.Close(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
	}
	os.RemoveAll(p.dir)
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
func (p *peer) write(name string, rows int, of func(i int) []float32) error {
	file, err := os.Create(filepath.Join(p.dir, name))
	if err != nil {
		return err
	}
	w := bufio.NewWriter(file)
	for i := range rows {
		if err := binary.Write(w, binary.LittleEndian, of(i)); err != nil {
			file.Close()
			return err
		}
	}
	if err := w.Flush(); err != nil {
		file.Close()
		return err
	}
	return file.Close()
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
			if err := p.write(
				"marks_"+c.Name, len(rows), func(i int) []float32 { return floats(rows[i].Marks) },
			); err != nil {
				return 0, err
			}
		}
		p.sent[c.Name] = true
	}
	var seconds float64
	err := p.process.Ask(ctx, job, &seconds)
	return seconds, err
}
