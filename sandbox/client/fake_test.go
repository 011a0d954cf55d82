package client_test

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/client"
	"github.com/ropewalk/ropewalk/sandbox/service"
)

// hangs is how long a test waits for what must happen. Only a test that hangs waits so long.
const hangs = 5 * time.Minute

// until waits for a condition.
func until(t *testing.T, met func() bool) {
	t.Helper()
	require.Eventually(t, met, hangs, time.Millisecond)
}

// fake answers a call with its code as stdout, and with a file named echo.
type fake struct {
	workers int
	takes   time.Duration
	hold    chan struct{} // if not nil, calls whose code begins with "hold" wait for it
	sticks  int           // if not 0, how many calls get an answer; later ones wait until their service ends

	mu     sync.Mutex
	runs   map[string]int // code → how often it ran
	breaks map[string]int // code → how often it breaks
}

func (f *fake) Workers() int { return max(f.workers, 1) }
func (f *fake) Close() error { return nil }

func (f *fake) Run(ctx context.Context, calls []sandbox.Call) ([]sandbox.Result, error) {
	out := make([]sandbox.Result, len(calls))
	for i, c := range calls {
		if err := f.begin(c); err != nil {
			return out, sandbox.CallErrors{err}
		}
		if f.hold != nil && strings.HasPrefix(c.Code, "hold") {
			select {
			case <-f.hold:
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}
		if f.sticks > 0 && f.total() > f.sticks {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		time.Sleep(f.takes)
		out[i] = sandbox.Result{Status: sandbox.StatusOK, Stdout: c.Code, Files: c.Files,
			Timing: sandbox.Timing{Wall: f.takes}}
	}
	return out, nil
}

func (f *fake) begin(c sandbox.Call) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.runs == nil {
		f.runs = map[string]int{}
	}
	f.runs[c.Code]++
	if c.Language == "cobol" {
		return fmt.Errorf("%w: language %q is not offered", sandbox.ErrBadCall, c.Language)
	}
	if f.breaks[c.Code] > 0 {
		f.breaks[c.Code]--
		return fmt.Errorf("%w: the zygote is gone", sandbox.ErrInfrastructure)
	}
	return nil
}

func (f *fake) ran(code string) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.runs[code]
}

// server is a service on its own port.
type server struct {
	*service.Service
	address string
	stop    func() error // drains the service briefly
	kill    func()       // like killing a process: connections break, and no answers are sent
}

func serve(t *testing.T, o service.Options) *server {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	return serveOn(t, listener, o)
}

func serveOn(t *testing.T, listener net.Listener, o service.Options) *server {
	t.Helper()
	o.Log = slog.New(slog.DiscardHandler)
	under := &cuttable{Listener: listener}
	s := &server{Service: service.New(o), address: listener.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Serve(ctx, under, nil, hangs) }()
	var once sync.Once
	end := func() (err error) {
		once.Do(func() { cancel(); err = <-done; _ = s.Service.Close() })
		return err
	}
	s.stop = end
	s.kill = func() {
		under.cut()
		once.Do(func() { _ = s.Service.Close(); cancel(); <-done })
	}
	t.Cleanup(func() { _ = end() })
	return s
}

// cuttable can break all its connections at once.
type cuttable struct {
	net.Listener
	mu    sync.Mutex
	conns []net.Conn
}

func (c *cuttable) Accept() (net.Conn, error) {
	conn, err := c.Listener.Accept()
	if err == nil {
		c.mu.Lock()
		c.conns = append(c.conns, conn)
		c.mu.Unlock()
	}
	return conn, err
}

func (c *cuttable) cut() {
	c.Listener.Close()
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, conn := range c.conns {
		conn.Close()
	}
}

func open(t *testing.T, o client.Options) *client.Client {
	t.Helper()
	c, err := client.Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, c.Close()) })
	require.NoError(t, c.Ready(t.Context()))
	return c
}

// quick is a preset with short waits between retries.
func quick() sandbox.Preset {
	p := sandbox.DefaultPreset
	p.Name, p.Backoff = "quick", time.Millisecond
	return p
}

func codes(n int) []sandbox.Call {
	calls := make([]sandbox.Call, n)
	for i := range calls {
		calls[i].Code = fmt.Sprintf("print(%d)", i)
	}
	return calls
}

// held returns calls that wait at nodes with a hold.
func held(n int) []sandbox.Call {
	calls := codes(n)
	for i := range calls {
		calls[i].Code = "hold " + calls[i].Code
	}
	return calls
}

// requireEach requires that every call got its own verdict.
func requireEach(t *testing.T, calls []sandbox.Call, results []sandbox.Result) {
	t.Helper()
	require.Len(t, results, len(calls))
	for i, r := range results {
		if r.Stdout != calls[i].Code || r.Status != sandbox.StatusOK {
			require.Failf(t, "mixed up", "call %d %q has %q %q", i, calls[i].Code, r.Status, r.Stdout)
		}
	}
}

func (f *fake) total() (sum int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, n := range f.runs {
		sum += n
	}
	return sum
}
