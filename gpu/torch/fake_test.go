package torch

import (
	"bufio"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/policy/checkpoint"
)

// The fake engine is this test binary started again: it speaks the protocol, holds no model and can be told to do what no
// engine should. Its mode says what goes wrong, and a call's name after a colon in which call.
//
//	fake MODE            one process
//	fake agent MODE      two ranks, each in a session of its own, that end together, as torchrun has them

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		if os.Args[2] == "agent" {
			os.Exit(agent(os.Args[3]))
		}
		serve(os.Args[2])
		os.Exit(0)
	}
	code := m.Run()
	closePool()
	os.Exit(code)
}

// agent starts rank 0, which speaks, and rank 1, which sleeps, and kills the other when one ends.
func agent(mode string) int {
	ended := make(chan error, 2)
	var ranks []*exec.Cmd
	for _, m := range []string{mode, "sleep"} {
		c := exec.Command(os.Args[0], "fake", m)
		c.Stdout, c.Stderr = os.Stdout, os.Stderr
		c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		if err := c.Start(); err != nil {
			panic(err)
		}
		ranks = append(ranks, c)
		go func() { ended <- c.Wait() }()
	}
	err := <-ended
	for _, r := range ranks {
		_ = r.Process.Kill()
	}
	<-ended
	if err != nil {
		fmt.Fprintln(os.Stderr, "agent: a rank ended:", err)
		return 1
	}
	return 0
}

type fake struct {
	mode, at string // what goes wrong, and in which call ("" = any)
	conn     net.Conn
	writing  sync.Mutex
	running  atomic.Uint64 // the call's id
	ticks    atomic.Uint64
	cancel   chan uint64
	loaded   map[string]*model
	kept     uint64
}

type model struct {
	digest string
	step   int64
	config []byte
}

func serve(mode string) {
	f := &fake{cancel: make(chan uint64, 9), loaded: map[string]*model{}}
	f.mode, f.at, _ = strings.Cut(mode, ":")
	usr1()
	fmt.Println("fake engine is up")
	switch f.mode {
	case "sleep":
		time.Sleep(time.Hour)
	case "exit":
		fmt.Fprintln(os.Stderr, "ModuleNotFoundError: No module named 'torch'")
		os.Exit(3)
	case "never":
		time.Sleep(time.Hour)
	}
	conn, err := net.Dial("unix", os.Getenv(socketVariable))
	if err != nil {
		panic(err)
	}
	f.conn = conn
	if !f.greet() {
		return
	}
	go f.beat()
	f.loop()
}

func usr1() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	go func() {
		for range c {
			fmt.Fprintf(os.Stderr, "Thread 0x1 of pid %d (most recent call first):\n  File \"model.py\", line 7 in forward\n", os.Getpid())
		}
	}()
}

func (f *fake) greet() bool {
	h := wire.Hello{
		Type: wire.TypeHello, Protocol: wire.Version, Nonce: os.Getenv(nonceVariable), Engine: "fake", PID: os.Getpid(), Ranks: 1,
		Versions: map[string]string{"torch": "2.15.0+cu130", "transformers": "5.23.0"}, Device: CPU, DeviceName: "fake", Dtype: Float32, Deterministic: true,
	}
	switch f.mode {
	case "garbage hello":
		fmt.Fprint(f.conn, strings.Repeat("GET / HTTP/1.1\r\n", 9))
		time.Sleep(time.Hour)
	case "mute":
		time.Sleep(time.Hour)
	case "protocol 2":
		h.Protocol = 2
	case "nonce":
		h.Nonce = strings.Repeat("0", 32)
	case "old torch":
		h.Versions["torch"] = "2.10.9"
	case "no transformers":
		delete(h.Versions, "transformers")
	case "ranks", "two":
		h.Ranks = 2
	case "dtype":
		h.Dtype = BFloat16
	}
	f.write(h)
	frame, err := wire.NewReader(f.conn, 0).Next()
	if err != nil {
		panic(err)
	}
	e, _ := wire.Peek(frame.Header)
	if e.Type != wire.TypeWelcome {
		fmt.Fprintf(os.Stderr, "fake engine: %s\n", frame.Header)
		return false
	}
	return true
}

func (f *fake) write(message any, arrays ...wire.Array) {
	f.writing.Lock()
	defer f.writing.Unlock()
	if err := wire.WriteFrame(f.conn, message, arrays...); err != nil {
		os.Exit(0) // the host has gone
	}
}

func (f *fake) beat() {
	for range time.Tick(10 * time.Millisecond) {
		f.write(wire.Beat{Type: wire.TypeBeat, At: f.running.Load(), Phase: "layers", Ticks: f.ticks.Load(), Done: 3, Total: 16, Memory: wire.Memory{Allocated: 5 << 20, Peak: 9 << 20}})
	}
}

func (f *fake) loop() {
	type got struct {
		wire.Frame
		wire.Envelope
	}
	calls := make(chan got, 9)
	go func() {
		r := wire.NewReader(bufio.NewReader(f.conn), wire.MaxBody)
		for {
			frame, err := r.Next()
			if err != nil {
				os.Exit(0)
			}
			e, err := wire.Peek(frame.Header)
			if err != nil {
				panic(err)
			}
			switch e.Type {
			case wire.TypeCancel:
				f.cancel <- e.ID
			case wire.TypeError:
				fmt.Fprintf(os.Stderr, "fake engine hears: %s\n", frame.Header)
			default:
				calls <- got{frame, e}
			}
		}
	}()
	for c := range calls {
		f.running.Store(c.ID)
		f.ticks.Add(1)
		done := f.at == "" || f.at == c.Call
		if !done || !f.misbehave(c.ID, c.Frame) {
			f.serve(c.ID, c.Call, c.Frame)
		}
		f.running.Store(0)
	}
}

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
		for range 40 {
			time.Sleep(20 * time.Millisecond)
			f.ticks.Add(1)
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
		f.write(wire.ForwardAnswer{Answer: answer}, wire.Of(wire.NameLogProbs, make([]float32, 3)), wire.Of(wire.NameValues, make([]float32, 3)))
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
		for name, text := range map[string]string{checkpoint.FileConfig: string(m.config), checkpoint.FileWeights: fmt.Sprint("weights after ", m.step)} {
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
		arrays, err := wire.Take(frame.Body, wire.Want{Name: wire.NameTokens, Dtype: wire.I32, Len: -1}, wire.Want{Name: wire.NameLengths, Dtype: wire.I32, Len: -1})
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

func decode[T any](f wire.Frame) (m T) {
	if err := wire.Decode(f.Header, &m); err != nil {
		panic(err)
	}
	return m
}

// fakeFolder is a checkpoint as far as the fake engine looks at it.
func fakeFolder(t testing.TB, weights string) (dir, digest string) {
	t.Helper()
	dir = t.TempDir()
	for name, text := range map[string]string{checkpoint.FileConfig: `{"model_type":"fake"}`, checkpoint.FileWeights: weights} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	digest, err := checkpoint.Digest(dir)
	if err != nil {
		t.Fatal(err)
	}
	return dir, digest
}
