package torch

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
	"github.com/ropewalk/ropewalk/internal/rescue"
)

const (
	// exitGrace is how long an engine may take to end once its socket is closed: the protocol's two seconds and one
	// more.
	exitGrace = 3 * time.Second
	// killGrace is how long the kernel may take to end killed processes.
	killGrace = 10 * time.Second
	// maxSocket is the longest path that a Unix socket can have on Linux, less the ending zero.
	maxSocket = 107
)

// process is one life of the engine.
type process struct {
	opts  Options
	dir   string // its own folder: engine, socket, temporary files
	tree  tree
	exit  *exit
	pipe  *os.File
	lines *tail

	gang Gang // nil with one host

	conn    net.Conn
	reader  *wire.Reader
	hello   wire.Hello
	writing sync.Mutex
	answers chan wire.Frame
	pulse   pulse
	lastID  uint64

	ending sync.Once
	done   chan struct{} // closed once lost is set and every process is gone
	lost   *lostError
}

// start starts an engine. If it fails, it leaves nothing behind.
func start(ctx context.Context, o Options) (_ *process, err error) {
	dir, err := makeFolder(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("start engine: %w", err)
	}
	p := &process{opts: o, dir: dir, answers: make(chan wire.Frame, 1), done: make(chan struct{})}
	if err = p.gather(ctx); err == nil {
		err = p.launch(ctx)
	}
	if err != nil {
		p.releaseHosts()
		os.RemoveAll(dir)
		return nil, fmt.Errorf("start engine: %w", err)
	}
	go p.read()
	go func() {
		<-p.exit.done
		// Messages that it sent before are read first.
		time.Sleep(100 * time.Millisecond)
		p.end(lostDied, "its process ended")
	}()
	if p.gang != nil {
		go p.watchGang()
	}
	return p, nil
}

// makeFolder makes the folder of one process. The socket's path must not be longer than the kernel accepts.
func makeFolder(parent string) (string, error) {
	dir, err := os.MkdirTemp(parent, "ropewalk-torch-")
	if err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	if dir, err = filepath.Abs(dir); err != nil {
		return "", err
	}
	if len(socketIn(dir)) <= maxSocket {
		return dir, nil
	}
	os.Remove(dir)
	if dir, err = os.MkdirTemp("", "ropewalk-torch-"); err != nil {
		return "", fmt.Errorf("make a folder: %w", err)
	}
	if len(socketIn(dir)) > maxSocket {
		os.Remove(dir)
		return "", fmt.Errorf("the path %s is too long for a socket (more than %d bytes)", socketIn(dir), maxSocket)
	}
	return dir, nil
}

func socketIn(dir string) string { return filepath.Join(dir, "socket") }

func (p *process) launch(ctx context.Context) error {
	main, err := extract(p.opts, filepath.Join(p.dir, "engine"))
	if err != nil {
		return err
	}
	secret := make([]byte, 16)
	rand.Read(secret) // never fails
	nonce := hex.EncodeToString(secret)
	listener, err := net.Listen("unix", socketIn(p.dir))
	if err != nil {
		return err
	}
	defer listener.Close()
	var cmd *exec.Cmd = p.opts.newCommand(main, p.dir, socketIn(p.dir), nonce)
	if p.pipe, p.exit, err = spawn(cmd); err != nil {
		return err
	}
	p.tree.root, p.lines = cmd.Process.Pid, followOutput(p.pipe, p.opts.Logger)
	ctx, cancel := context.WithTimeoutCause(
		ctx, p.opts.StartLimit, fmt.Errorf("it did not greet within %s", p.opts.StartLimit),
	)
	defer cancel()
	if p.conn, p.reader, p.hello, err = p.acceptEngine(ctx, listener, nonce); err != nil {
		p.killAll()
		if last := p.lines.last(lastInNote); last != "" {
			err = fmt.Errorf("%w; it wrote last:\n%s", err, last)
		}
		return err
	}
	p.tree.findRanks(p.opts.sharded())
	return nil
}

// killAll kills all processes and waits until they are gone. It returns how the started process ended.
func (p *process) killAll() string {
	if p.conn != nil {
		p.conn.Close()
	}
	p.tree.kill()
	how := "it cannot be killed"
	select {
	case <-p.exit.done:
		how = "exit status 0"
		if p.exit.err != nil {
			how = p.exit.err.Error()
		}
	case <-time.After(killGrace):
	}
	p.tree.awaitExit(killGrace)
	// No process writes any more, unless one has escaped and still holds the pipe.
	select {
	case <-p.lines.end:
	case <-time.After(time.Second):
	}
	p.pipe.Close()
	return how
}

// end ends the process for a reason, once, and returns when all its processes are gone.
func (p *process) end(reason lostReason, detail string) { p.endWith(reason, detail, "") }

func (p *process) endWith(reason lostReason, detail, stacks string) {
	p.ending.Do(func() {
		call := p.pulse.call()
		if reason == lostDied || reason == lostClosed {
			// The process ends by itself, and its exit status says how.
			p.conn.Close()
			select {
			case <-p.exit.done:
			case <-time.After(exitGrace):
			}
		}
		how := p.killAll()
		p.releaseHosts()
		os.RemoveAll(p.dir)
		p.lost = &lostError{
			Reason: reason, Detail: detail + " (" + how + ")", Call: call, Stacks: stacks,
			Log: p.lines.last(lastInNote),
		}
		if reason != lostClosed {
			p.opts.Logger.Error(
				"engine lost", "reason", string(reason), "detail", p.lost.Detail, "call", call, "stacks", stacks,
			)
		}
		close(p.done)
	})
	<-p.done
}

// read handles the engine's messages until the connection ends.
func (p *process) read() {
	for {
		err := rescue.Do(func() error {
			f, err := p.reader.Next()
			if err == nil {
				err = p.dispatch(f)
			}
			return err
		})
		if err != nil {
			p.fail(err)
			return
		}
	}
}
