package main

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/rl/loss"
	"github.com/ropewalk/ropewalk/rl/loss/losstest"
)

//go:embed peer.py
var peerScript string

// formulas is the folder of parity.py, whose formulas the peer measures.
const formulas = "rl/loss/testdata"

// peer is a Python process that holds the batch and measures a loss a line.
type peer struct {
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	dir  string
	sent map[string]bool // marks of losses that the peer has
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
	p.cmd = exec.CommandContext(ctx, interpreter, "-c", peerScript, dir, formulas, fmt.Sprint(len(b.Rows)))
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	p.out = bufio.NewReader(stdout)
	return p, p.cmd.Start()
}

func (p *peer) stop() {
	if p == nil {
		return
	}
	if p.cmd != nil && p.cmd.Process != nil {
		p.in.Close()
		if err := p.cmd.Wait(); err != nil {
			fmt.Fprintln(os.Stderr, "end PyTorch:", err)
		}
	}
	os.RemoveAll(p.dir)
}

func (p *peer) writeBatch(b losstest.Batch[float32]) error {
	fields := map[string]func(i int) []float32{
		"logp": func(i int) []float32 { return b.Rows[i].LogProbs }, "old": func(i int) []float32 { return b.Rows[i].Old },
		"adv": func(i int) []float32 { return b.Rows[i].Advantages }, "ref": func(i int) []float32 { return b.Rows[i].Ref },
		"entropy": func(i int) []float32 { return b.Rows[i].Entropies }, "mask": func(i int) []float32 { return floats(b.Rows[i].Mask) },
		"value": func(i int) []float32 { return b.Values[i].Values }, "value_old": func(i int) []float32 { return b.Values[i].Old },
		"returns": func(i int) []float32 { return b.Values[i].Returns },
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

// measure gives the seconds of one forward and backward of a loss.
func (p *peer) measure(c losstest.Case, b losstest.Batch[float32]) (float64, error) {
	job := map[string]any{"name": c.Name, "params": params(c)}
	if !p.sent[c.Name] {
		rows, _, err := losstest.Planned(c, b)
		if err != nil {
			return 0, err
		}
		if rows[0].Marks != nil {
			job["marks"] = "marks_" + c.Name
			if err := p.write("marks_"+c.Name, len(rows), func(i int) []float32 { return floats(rows[i].Marks) }); err != nil {
				return 0, err
			}
		}
		p.sent[c.Name] = true
	}
	line, err := json.Marshal(job)
	if err != nil {
		return 0, err
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return 0, err
	}
	answer, err := p.out.ReadBytes('\n')
	if err != nil {
		return 0, fmt.Errorf("read PyTorch's answer: %w", err)
	}
	var seconds float64
	return seconds, json.Unmarshal(answer, &seconds)
}

// params are a case's settings under the names of parity.py.
func params(c losstest.Case) map[string]any {
	if c.Value != nil {
		return map[string]any{"policy": "value_clip", "clip": c.Value.Clip}
	}
	out := map[string]any{}
	if k := c.Objective.KL; k != nil {
		out["estimator"], out["c_kl"] = k.Estimator, k.Coefficient
	}
	if h := c.Objective.Entropy; h != nil {
		out["c_h"] = h.Coefficient
	}
	if c.Objective.Policy == nil {
		return out
	}
	out["policy"] = c.Name
	if bounds := c.Objective.Policy.Bounds(); bounds.High > 0 {
		out["low"], out["high"], out["dual"] = 1-bounds.Low, bounds.High-1, bounds.Dual
	}
	switch s := c.Objective.Policy.(type) {
	case loss.SAPO:
		out["tau_positive"], out["tau_negative"] = s.TauPositive, s.TauNegative
	case loss.CEGPPO:
		out["beta1"], out["beta2"] = s.Beta1, s.Beta2
	case loss.KLCov:
		out["coefficient"] = s.Coefficient
	case loss.SelfImitation:
		out["gamma"] = s.Gamma
	}
	return out
}
