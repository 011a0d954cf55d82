package remote

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/secret"
)

// place says where a server is: at an address, or a program to start.
type place struct {
	url                   string
	command, env, headers []string
}

// portMark stands for the port in a command.
const portMark = "{port}"

// schemes maps the scheme of a server's address to that of its sessions.
var schemes = map[string]string{"http": "ws", "https": "wss", "ws": "ws", "wss": "wss"}

// server is a server that can be connected to. If it is a program of this worker, it ends with its sessions.
type server struct {
	life
	session *url.URL // of the sessions
	schema  *url.URL // of the description of actions
	headers http.Header
	secrets *secret.Values
	cmd     *exec.Cmd // nil for a server at an address
	faults  *tail
}

// start starts the place's program, or prepares to connect to its address. It waits for neither.
func (p place) start(idle time.Duration) (*server, error) {
	s := &server{secrets: &secret.Values{}, headers: http.Header{}, faults: &tail{}}
	s.idle, s.stop = idle, func() {}
	headers, err := s.secrets.Headers(p.headers)
	if err != nil {
		return nil, err
	}
	for name, value := range headers {
		s.headers.Set(name, value)
	}
	address, err := s.secrets.Resolve("url", p.url)
	if err != nil {
		return nil, err
	}
	switch {
	case len(p.command) > 0:
		if address, err = s.run(p); err != nil {
			return nil, err
		}
	case address == "":
		return nil, errors.New("url: names no OpenEnv server")
	}
	return s, s.aim(address)
}

// aim sets the addresses.
func (s *server) aim(address string) error {
	u, err := url.Parse(address)
	if err != nil || schemes[u.Scheme] == "" || u.Host == "" {
		return errors.New("url: is no address of a server")
	}
	session, schema := *u, *u
	session.Scheme = schemes[u.Scheme]
	schema.Scheme = strings.Replace(session.Scheme, "ws", "http", 1)
	s.session, s.schema = session.JoinPath("ws"), schema.JoinPath("schema")
	return nil
}

// run starts the program on a free port and returns its address.
func (s *server) run(p place) (string, error) {
	port, err := freePort()
	if err != nil {
		return "", err
	}
	words := make([]string, len(p.command))
	for i, word := range p.command {
		if words[i], err = s.secrets.Resolve("command", strings.ReplaceAll(word, portMark, port)); err != nil {
			return "", err
		}
	}
	variables, err := s.secrets.Variables(p.env)
	if err != nil {
		return "", err
	}
	s.cmd = exec.Command(words[0], words[1:]...)
	s.cmd.Env = append([]string{}, variables...)
	s.cmd.Stdout, s.cmd.Stderr = s.faults, s.faults
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	s.cmd.WaitDelay = time.Second // a grandchild may hold the output
	if err := s.cmd.Start(); err != nil {
		return "", fmt.Errorf("start the OpenEnv server: %w", err)
	}
	s.stop = func() { _ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) }
	go func() {
		err := s.cmd.Wait()
		s.kill(fmt.Errorf("%w: the OpenEnv server ended (%v): %s", ErrLost, err, s.faults.last()))
	}()
	return "http://127.0.0.1:" + port, nil
}

// freePort returns a port of 127.0.0.1 that no one listens on.
func freePort() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a port for the OpenEnv server: %w", err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port), nil
}
