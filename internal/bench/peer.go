package bench

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/internal/python"
)

// Peer is a process that reads questions from its standard input, one line of JSON each, and answers each with one line
// of JSON. It leads its own process group, so that its children end with it. A Peer is for one goroutine.
type Peer struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	wrote  bytes.Buffer // to standard error, once it has ended
	unhook func() bool  // from the context that StartPeer was given
	over   bool         // the process was waited for
}

// StartPeer starts a command whose standard streams are not set. name is the peer's name in errors. The peer is killed
// when the context ends. The caller ends it by Close or Kill.
func StartPeer(ctx context.Context, name string, cmd *exec.Cmd) (*Peer, error) {
	in, err := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	p := &Peer{name: name, cmd: cmd, in: in, out: bufio.NewReader(out)}
	cmd.Stderr = &p.wrote
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err = cmp.Or(err, outErr); err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	p.unhook = context.AfterFunc(ctx, p.signal)
	return p, nil
}

// StartScript starts a script with an interpreter of Python as StartPeer does.
func StartScript(ctx context.Context, name string, cmd *exec.Cmd, script string, args ...string) (*Peer, error) {
	run, file, err := python.Attach(cmd, "<peer>", script)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	defer file.Close()
	cmd.Args = append(append(cmd.Args, "-c", run), args...)
	return StartPeer(ctx, name, cmd)
}

// Ask sends a question and reads its answer. After an error the peer has ended. A context that ends, ends the peer.
func (p *Peer) Ask(ctx context.Context, question, answer any) error {
	line, err := json.Marshal(question)
	if err != nil {
		return fmt.Errorf("ask %s: %w", p.name, err)
	}
	if p.over {
		return fmt.Errorf("ask %s: it has ended", p.name)
	}
	if _, err := p.in.Write(append(line, '\n')); err != nil {
		return p.lost(ctx, err)
	}
	return p.Hear(ctx, answer)
}

// Hear reads a line that the peer writes without a question, such as a greeting. Errors are those of Ask.
func (p *Peer) Hear(ctx context.Context, into any) error {
	unhook := context.AfterFunc(ctx, p.signal)
	line, err := p.out.ReadBytes('\n')
	unhook()
	if err != nil {
		return p.lost(ctx, err)
	}
	if err := json.Unmarshal(line, into); err != nil {
		return p.lost(ctx, fmt.Errorf("read %q: %w", line, err))
	}
	return nil
}

// grace is how long a program or a peer has to end by itself.
const grace = 30 * time.Second

// lost ends the peer and returns why it cannot answer, with the end of its standard error.
func (p *Peer) lost(ctx context.Context, err error) error {
	if ended := p.end(grace); ended != nil && !errors.As(err, new(*json.SyntaxError)) {
		err = ended // says more than a pipe that was closed
	}
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return fmt.Errorf("%s is lost: %w; it wrote last:%s", p.name, err, tail(p.wrote.String()))
}

// Close ends the peer's input and waits for its end. It returns the most bytes that were resident in the process. The
// error says how a peer failed that did not exit with 0.
func (p *Peer) Close() (peak int64, err error) {
	if err := p.end(grace); err != nil {
		return 0, fmt.Errorf("end %s: %w; it wrote last:%s", p.name, err, tail(p.wrote.String()))
	}
	usage, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage)
	if !ok {
		return 0, fmt.Errorf("end %s: the system does not report its memory", p.name)
	}
	return usage.Maxrss << 10, nil // Linux counts in KiB
}

// Kill ends the peer and its children at once. A second call does nothing.
func (p *Peer) Kill() {
	if !p.over {
		p.signal()
		_ = p.end(0) // it was killed
	}
}

// end waits for the process, which is killed after the grace. A second call does nothing.
func (p *Peer) end(grace time.Duration) error {
	if p.over {
		return nil
	}
	p.over = true
	p.in.Close()
	timer := time.AfterFunc(grace, p.signal)
	err := p.cmd.Wait()
	timer.Stop()
	p.unhook()
	return err
}

func (p *Peer) signal() { _ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) }
