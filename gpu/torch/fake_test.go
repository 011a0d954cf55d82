package torch

import (
	"bufio"
	"context"
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

// The fake engine is this test binary started again: it speaks the protocol, holds no model and can be told to do what
// no engine should. Its mode says what goes wrong, and a call's name after a colon in which call.
//
//	fake MODE            one process
//	fake agent MODE      two ranks, each in its own session, that end together, as torchrun has them

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "fake" {
		if os.Args[2] == "agent" {
			os.Exit(agent(os.Args[3]))
		}
		if os.Args[2] == "host" {
			host()
		}
		serve(os.Args[2])
		os.Exit(0)
	}
	code := m.Run()
	closePool()
	os.Exit(code)
}

// host opens an engine, tells its process, and waits for its end.
func host() {
	dir, err := os.MkdirTemp("", "ropewalk-host-")
	if err != nil {
		panic(err)
	}
	go func() { // its engine ends at once when it is killed, so somebody else has to clear up
		c := exec.Command(
			"sh", "-c", "while kill -0 $0 2>/dev/null; do sleep 0.05; done; rm -rf $1", fmt.Sprint(os.Getpid()), dir,
		)
		_ = c.Run()
	}()
	e, err := Open(
		context.Background(), Options{command: []string{os.Args[0], "fake", "stubborn"}, Dir: dir, Deterministic: true},
	)
	if err != nil {
		panic(err)
	}
	fmt.Println(e.latest().tree.root)
	time.Sleep(time.Hour)
}

// agent starts a rank that sleeps and one that speaks, and kills the other when one ends.
func agent(mode string) int {
	ended := make(chan error, 2)
	var ranks []*exec.Cmd
	// As under torchrun, rank 0 speaks only when all are there.
	for _, m := range []string{"sleep", mode} {
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
	go func() {
		for range time.Tick(10 * time.Millisecond) {
			f.beat()
		}
	}()
	f.loop()
}

func usr1() {
	c := make(chan os.Signal, 1)
	signal.Notify(c, syscall.SIGUSR1)
	go func() {
		for range c {
			fmt.Fprintf(
				os.Stderr, "Thread 0x1 of pid %d (most recent call first):\n  File \"model.py\", line 7 in forward\n",
				os.Getpid(),
			)
		}
	}()
}

func (f *fake) greet() bool {
	h := wire.Hello{
		Type: wire.TypeHello, Protocol: wire.Version, Nonce: os.Getenv(nonceVariable), Engine: "fake", PID: os.Getpid(),
		Ranks: 1,
		Versions: map[string]string{
			"torch": "2.15.0+cu130", "transformers": "5.23.0", "safetensors": "0.8.0",
		}, Device: CPU, DeviceName: "fake", Dtype: Float32, Deterministic: true,
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
	case "lora no peft":
		h.LoRA = &wire.LoRA{Rank: 3, Alpha: 6, Targets: []string{"q_proj", "v_proj", "down_proj"}}
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
	f.write(
		wire.Beat{
			Type: wire.TypeBeat, At: f.running.Load(), Phase: "layers", Ticks: f.ticks.Load(), Done: 3, Total: 16,
			Memory: wire.Memory{Allocated: 5 << 20, Peak: 9 << 20},
		},
	)
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
	for name, text := range map[string]string{checkpoint.FileConfig: `{"model_type":"fake"}`,
		checkpoint.FileWeights: weights} {
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
