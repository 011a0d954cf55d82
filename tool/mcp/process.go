package mcp

import (
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"
)

const (
	// closeGrace is how long a program may take to end after its input was closed.
	closeGrace = 2 * time.Second
	// stderrKept is how much of a program's last error output an error shows, in bytes.
	stderrKept = 2 << 10
)

// process is the program of a server, with its pipes. It leads a process group of its own, which ends with it.
type process struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    io.ReadCloser
	errors *tail
	once   sync.Once
}

// startProcess starts a program with these variables alone.
func startProcess(command, env []string) (*process, error) {
	p := &process{cmd: exec.Command(command[0], command[1:]...), errors: &tail{}}
	p.cmd.Env = append([]string{}, env...)
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.Stderr = p.errors
	p.cmd.WaitDelay = time.Second // a grandchild may hold the error output
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	if p.out, err = p.cmd.StdoutPipe(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", command[0], err)
	}
	return p, nil
}

// Close ends the program: it closes the program's input, waits a moment and then kills the process group. Further calls
// wait for the first.
func (p *process) Close() error {
	p.once.Do(func() {
		_ = p.in.Close()
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			_ = p.cmd.Wait() // how the program ends says nothing about its calls
		}()
		select {
		case <-ended:
		case <-time.After(closeGrace):
		}
		// The group outlives its leader while it has members, so its number is still the group's if there are any.
		_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
		<-ended
	})
	return nil
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	kept []byte
}

// Write keeps the last bytes.
func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.kept = append(t.kept, p[max(0, len(p)-stderrKept):]...)
	if over := len(t.kept) - stderrKept; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	return len(p), nil
}

// String returns what is kept, as one line.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.Join(strings.Fields(strings.ToValidUTF8(string(t.kept), "\uFFFD")), " ")
}

// meter bounds how much is read between two resets.
type meter struct {
	io.ReadCloser
	most   int64
	mu     sync.Mutex
	read   int64
	excess func() // runs once when more is read
}

// Read reads, unless too much was read.
func (m *meter) Read(p []byte) (int, error) {
	n, err := m.ReadCloser.Read(p)
	m.mu.Lock()
	m.read += int64(n)
	over := m.read > m.most
	m.mu.Unlock()
	if over {
		m.excess()
		return 0, ErrFlood
	}
	return n, err
}

// reset begins to count from zero.
func (m *meter) reset() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.read = 0
}
