package remote

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/badinput"
	"github.com/ropewalk/ropewalk/internal/python"
	"github.com/ropewalk/ropewalk/python/adapter"
)

// process is a running adapter. Requests wait for each other: Python runs one at a time. After any failure of the
// process it is killed, and all its sessions are lost.
type process struct {
	life
	code code
	most int // bytes of a reply

	turn   chan struct{} // holds one token; who has it may send a request
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	faults *tail

	files  []*source // imported so far; the holder of the turn may use them
	loaded bool      // the code was imported whole

	numbers atomic.Int64 // sessions so far
}

// tail keeps the last bytes that were written to it.
type tail struct {
	mu   sync.Mutex
	text []byte
}

const (
	tailBytes = 2048
	// maxListing is how long a line with imported files may be, beyond a reply.
	maxListing = 1 << 20
)

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p[max(0, len(p)-tailBytes):]...)
	t.text = t.text[max(0, len(t.text)-tailBytes):]
	return len(p), nil
}

// last returns the last line.
func (t *tail) last() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	lines := strings.Split(strings.TrimSpace(string(t.text)), "\n")
	return lines[len(lines)-1]
}

// startProcess starts an adapter.
func startProcess(c code, maxReply int, idle time.Duration) (*process, error) {
	p := &process{code: c, most: maxReply + maxListing, turn: make(chan struct{}, 1), faults: &tail{}}
	p.idle, p.stop = idle, p.end
	p.cmd = exec.Command(c.interpreter, "-u", "-c")
	run, program, err := python.Attach(p.cmd, "<adapter>", adapter.Program)
	if err != nil {
		return nil, err
	}
	defer program.Close()
	p.cmd.Args = append(p.cmd.Args, run)
	p.cmd.Stderr = p.faults
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the Python adapter with %s: %w", c.interpreter, err)
	}
	p.in, p.out = in, bufio.NewReaderSize(out, 1<<16)
	p.turn <- struct{}{}
	return p, nil
}

// reply is one line of the adapter.
type reply struct {
	Text       *string        `json:"text"`
	Reward     *float64       `json:"reward"`
	Done       bool           `json:"done"`
	Success    *bool          `json:"success"`
	Admissible []string       `json:"admissible"`
	Type       string         `json:"type"`
	Level      int            `json:"level"`
	Score      *float64       `json:"score"`
	Actions    []string       `json:"actions"` // of the expert; none: it knows none
	Tasks      map[string]int `json:"tasks"`   // by split
	Scores     []score        `json:"scores"`
	Error      string         `json:"error"`
	// Code are files that a request imported. A line with them comes before the reply.
	Code []*source `json:"code"`
}

// score is a reward function's result for one trajectory.
type score struct {
	Score   *float64 `json:"score"`
	Success *bool    `json:"success"`
	Error   string   `json:"error"`
}

// ask sends a request when the requests before it are answered, and reads its reply within the time limit. What Python
// reports as an exception leaves the process as it is; everything else ends it. So does an edit of the code.
func (p *process) ask(ctx context.Context, limit time.Duration, request map[string]any) (r reply, err error) {
	err = p.inTurn(ctx, func() error {
		r, err = p.send(ctx, limit, request)
		return err
	})
	return r, err
}

// inTurn calls do with the turn, after it has loaded the code.
func (p *process) inTurn(ctx context.Context, do func() error) error {
	select {
	case <-p.turn:
	case <-ctx.Done():
		return fmt.Errorf("wait for the Python adapter: %w", ctx.Err())
	}
	defer func() { p.turn <- struct{}{} }()
	if i := slices.IndexFunc(p.files, (*source).edited); i >= 0 && p.failure() == nil {
		slog.InfoContext(ctx, "Python code was edited and is loaded again", "module", p.code.module,
			"file", p.files[i].Path)
		p.kill(errEdited)
	}
	if err := p.failure(); err != nil {
		return fmt.Errorf("%w: %w", ErrLost, err)
	}
	if err := p.load(ctx); err != nil {
		return err
	}
	return do()
}

// send sends a request and reads its reply. The caller holds the turn.
func (p *process) send(ctx context.Context, limit time.Duration, request map[string]any) (reply, error) {
	type result struct {
		reply
		err error
	}
	done := make(chan result, 1)
	go func() {
		r, err := p.exchange(request)
		done <- result{r, err}
	}()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	var got result
	select {
	case got = <-done:
	case <-limited.Done():
		p.kill(fmt.Errorf("the Python adapter was ended: %s took too long: %w", request["do"], limited.Err()))
		<-done // the pipes are closed
		got.err = p.failure()
	}
	if got.err != nil {
		p.kill(got.err)
		return reply{}, got.err
	}
	if got.Error != "" {
		return got.reply, CodeError{err: fmt.Errorf("the Python code raised %s", got.Error), loads: p.loaded}
	}
	return got.reply, nil
}

// exchange writes a line and reads one.
func (p *process) exchange(request map[string]any) (r reply, err error) {
	text, err := json.Marshal(request)
	if err != nil {
		return r, fmt.Errorf("encode a request: %w", err)
	}
	if _, err := p.in.Write(append(text, '\n')); err != nil {
		return r, p.ended(err)
	}
	for {
		line, err := p.line()
		if err != nil {
			return r, err
		}
		r = reply{}
		if err := json.Unmarshal(line, &r); err != nil {
			return r, fmt.Errorf("read the Python adapter's reply: %w", badinput.JSON(err))
		}
		if r.Code == nil {
			return r, nil
		}
		for _, f := range r.Code {
			p.files = slices.DeleteFunc(p.files, func(g *source) bool { return g.Path == f.Path })
			p.files = append(p.files, f)
		}
	}
}

// line reads a line of limited length.
func (p *process) line() ([]byte, error) {
	var line []byte
	for {
		part, err := p.out.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > p.most:
			return nil, fmt.Errorf("the Python adapter's reply has more than %d bytes", p.most)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, p.ended(err)
		}
	}
}

// ended describes the end of the process.
func (p *process) ended(err error) error {
	if last := p.faults.last(); last != "" {
		return fmt.Errorf("%w: the Python adapter ended (%w): %s", ErrLost, err, last)
	}
	return fmt.Errorf("%w: the Python adapter ended: %w", ErrLost, err)
}

// end ends the operating system's processes: the adapter and what it has started.
func (p *process) end() {
	// The process may have ended by itself; Wait reports how it ended, and the reason is known already.
	_ = p.in.Close()
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	go func() { _ = p.cmd.Wait() }()
}
