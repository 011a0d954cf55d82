// Package launch starts servers of other programs on this machine, for benchmarks and tests.
package launch

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// startWithin is how long a server has to load its model, on a busy machine. vLLM compiles parts of it.
const startWithin = 15 * time.Minute

// Server is an inference server that runs on this machine, with all that it has started.
type Server struct {
	URL   string
	name  string // for messages
	cmd   *exec.Cmd
	in    io.Closer // its standard input, which is open as long as it runs
	ended chan struct{}
}

// Start starts a server on a free port of this machine. variables are added to its environment; out takes what
// it writes; command returns its command line.
func Start(name string, variables []string, out io.Writer, command func(port string) []string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return nil, err
	}
	line := command(port)
	s := &Server{URL: "http://127.0.0.1:" + port, name: name, cmd: exec.Command(line[0], line[1:]...),
		ended: make(chan struct{})}
	s.cmd.Env, s.cmd.Stdout, s.cmd.Stderr = append(os.Environ(), variables...), out, out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if s.in, err = s.cmd.StdinPipe(); err == nil {
		err = s.cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = s.cmd.Wait() // Kill ends it
		close(s.ended)
	}()
	return s, nil
}

// StartReady starts a server and waits until it answers at the path ready.
func StartReady(ctx context.Context, name, ready string, variables []string,
	command func(port string) []string) (*Server, error) {
	s, err := Start(name, variables, os.Stderr, command)
	if err != nil {
		return nil, err
	}
	if err := s.Await(ctx, ready); err != nil {
		s.Kill()
		return nil, err
	}
	return s, nil
}

// Await waits until the server answers at a path, or with "" until it answers at all.
func (s *Server) Await(ctx context.Context, ready string) error {
	late := time.After(startWithin)
	for !answers(ctx, s.URL, ready) {
		select {
		case <-s.ended:
			return fmt.Errorf("%s has ended: %s", s.name, s.cmd.ProcessState)
		case <-ctx.Done():
			return ctx.Err()
		case <-late:
			return fmt.Errorf("%s is not ready after %s", s.name, startWithin)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return nil
}

// answers reports whether a request is answered, with 200 if it is of a path.
func answers(ctx context.Context, url, path string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url+path, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status counts
	return path == "" || response.StatusCode == http.StatusOK
}

// Kill ends the server at once, and waits until it has ended. A second call does nothing.
func (s *Server) Kill() {
	s.Signal(syscall.SIGKILL)
	<-s.ended
	_ = s.in.Close() // no one reads it any more
}

// Signal sends a signal to the server and what it has started.
func (s *Server) Signal(sig syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, sig) } // it may have ended
