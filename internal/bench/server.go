package bench

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// startWithin is how long a server has to load its model. vLLM compiles parts of it.
const startWithin = 10 * time.Minute

// Server is an inference server that runs on this machine, with all that it has started.
type Server struct {
	URL   string
	cmd   *exec.Cmd
	ended chan struct{}
}

// StartServer starts a server on a free port of this machine and waits until it answers at the path ready. name is for
// messages; variables are added to its environment; command returns its command line.
func StartServer(ctx context.Context, name, ready string, variables []string,
	command func(port string) []string) (*Server, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	if err := l.Close(); err != nil {
		return nil, err
	}
	line := command(port)
	s := &Server{URL: "http://127.0.0.1:" + port, cmd: exec.Command(line[0], line[1:]...), ended: make(chan struct{})}
	s.cmd.Env, s.cmd.Stderr = append(os.Environ(), variables...), os.Stderr
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = s.cmd.Wait() // Kill ends it
		close(s.ended)
	}()
	late := time.After(startWithin)
	for !answers(ctx, s.URL+ready) {
		select {
		case <-s.ended:
			return nil, fmt.Errorf("%s has ended: %s", name, s.cmd.ProcessState)
		case <-ctx.Done():
			s.Kill()
			return nil, ctx.Err()
		case <-late:
			s.Kill()
			return nil, fmt.Errorf("%s is not ready after %s", name, startWithin)
		case <-time.After(20 * time.Millisecond):
		}
	}
	return s, nil
}

// answers reports whether a request is answered with 200.
func answers(ctx context.Context, url string) bool {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = response.Body.Close() // only the status counts
	return response.StatusCode == http.StatusOK
}

// Kill ends the server at once, and waits until it has ended.
func (s *Server) Kill() {
	s.Signal(syscall.SIGKILL)
	<-s.ended
}

// Signal sends a signal to the server and what it has started.
func (s *Server) Signal(sig syscall.Signal) { _ = syscall.Kill(-s.cmd.Process.Pid, sig) } // it may have ended
