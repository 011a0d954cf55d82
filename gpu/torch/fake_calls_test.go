package torch

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// misbehave reports whether the call is done with.
func (f *fake) misbehave(id uint64, frame wire.Frame) bool {
	answer := wire.Answer{Type: wire.TypeAnswer, ID: id, Seconds: 0.5, TorchSeconds: 0.25}
	switch f.mode {
	case "die":
		fmt.Fprintln(os.Stderr, "CUDA error: an illegal memory access")
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		time.Sleep(time.Hour)
	case "hang":
		time.Sleep(time.Hour)
	case "stop":
		_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
	case "slow":
		for range 4 {
			f.ticks.Add(1)
			f.beat()
		}
		return false
	case "stubborn":
		for {
			time.Sleep(10 * time.Millisecond)
			f.ticks.Add(1)
		}
	case "wait":
		for cancelled := range f.cancel {
			if cancelled == id {
				f.write(wire.Error{Type: wire.TypeError, ID: id, Kind: wire.KindCancelled, Message: "cancelled"})
				return true
			}
		}
	case "garbage":
		f.writing.Lock()
		fmt.Fprint(f.conn, strings.Repeat("\x80\x02}q\x00", 100))
		f.writing.Unlock()
		time.Sleep(time.Hour)
	case "complain":
		f.write(wire.Error{Type: wire.TypeError, Kind: wire.KindProtocol, Message: "array \"tokens\" is missing"})
		time.Sleep(time.Hour)
	case "other id":
		answer.ID++
		f.write(answer)
	case "twice":
		f.write(answer)
		f.write(answer)
	case "unknown field":
		f.write(struct {
			wire.Answer
			More int `json:"more"`
		}{answer, 1})
	case "big":
		f.write(wire.ForwardAnswer{Answer: answer}, wire.Of(wire.NameLogProbs, make([]float32, 1<<20)))
	case "no array":
		f.write(wire.ForwardAnswer{Answer: answer})
	case "surplus array":
		f.write(
			wire.ForwardAnswer{Answer: answer}, wire.Of(wire.NameLogProbs, make([]float32, 3)),
			wire.Of(wire.NameValues, make([]float32, 3)),
		)
	case "short array":
		f.write(wire.ForwardAnswer{Answer: answer}, wire.Of(wire.NameLogProbs, make([]float32, 2)))
	case "keeps":
		f.write(wire.ForwardAnswer{Answer: answer, Kept: 4}, wire.Of(wire.NameLogProbs, make([]float32, 3)))
	case "other digest":
		f.write(wire.LoadAnswer{Answer: answer, Digest: "feed", Reused: []string{"weights"}})
	default:
		kind, ok := strings.CutPrefix(f.mode, "error ")
		if !ok {
			return false
		}
		f.write(wire.Error{Type: wire.TypeError, ID: id, Kind: kind, Message: "so it is", Name: "model.norm.weight"})
	}
	return true
}

func (f *fake) serve(id uint64, call string, frame wire.Frame) {
	answer := wire.Answer{Type: wire.TypeAnswer, ID: id, Seconds: 0.5, TorchSeconds: 0.25}
	switch call {
	case wire.CallLoad:
		c := decode[wire.Load](frame)
		config, err := os.ReadFile(filepath.Join(c.Dir, checkpoint.FileConfig))
		if err != nil {
			panic(err)
		}
		a := wire.LoadAnswer{Answer: answer, Digest: c.Digest, Params: 7, Reused: []string{}}
		if m := f.loaded[c.Role]; m != nil && m.digest == c.Digest {
			a.Reused = []string{"weights"}
		}
		f.loaded[c.Role] = &model{digest: c.Digest, config: config}
		f.write(a)
	case wire.CallSave:
		c := decode[wire.Save](frame)
		m := f.loaded[c.Role]
		for name, text := range map[string]string{checkpoint.FileConfig: string(m.config),
			checkpoint.FileWeights: fmt.Sprint("weights after ", m.step)} {
			if err := os.WriteFile(filepath.Join(c.Dir, name), []byte(text), 0o600); err != nil {
				panic(err)
			}
		}
		f.write(wire.SaveAnswer{Answer: answer, Step: m.step})
	case wire.CallSaved:
		c := decode[wire.Saved](frame)
		f.loaded[c.Role].digest = c.Digest
		f.write(answer)
	case wire.CallForward:
		c := decode[wire.Forward](frame)
		arrays, err := wire.Take(
			frame.Body, wire.Want{Name: wire.NameTokens, Dtype: wire.I32, Len: -1},
			wire.Want{Name: wire.NameLengths, Dtype: wire.I32, Len: -1},
		)
		if err != nil {
			panic(err)
		}
		a, out := wire.ForwardAnswer{Answer: answer}, []wire.Array{}
		if c.Keep {
			f.kept++
			a.Kept = f.kept
		}
		for _, o := range outputs {
			for _, said := range c.Outputs {
				if said == o.said {
					out = append(out, wire.Of(o.array, make([]float32, arrays[0].Len)))
				}
			}
		}
		f.write(a, out...)
	case wire.CallStep:
		c := decode[wire.Step](frame)
		m := f.loaded[c.Role]
		m.step, m.digest = m.step+1, ""
		f.write(wire.StepAnswer{Answer: answer, GradNorm: 2, Step: m.step})
	case wire.CallState:
		c := decode[wire.OfRole](frame)
		a := wire.StateAnswer{Answer: answer}
		if m := f.loaded[c.Role]; m != nil {
			a.Loaded, a.Digest, a.Step, a.Params = true, m.digest, m.step, 7
		}
		f.write(a)
	case wire.CallShutdown:
		f.write(answer)
		os.Exit(0)
	default:
		f.write(answer)
	}
}
