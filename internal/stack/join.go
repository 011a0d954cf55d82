package stack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// Join gives a command the stack that it needs: it joins the one that runs in the root folder,
// starting what is missing, or starts one. It returns when everything needed is healthy. Servers
// that the environment selects are used as they are; if nothing else is needed, nothing is started.
func Join(ctx context.Context, opts Options) (*Lease, error) {
	opts, err := opts.withDefaults()
	if err != nil {
		return nil, err
	}
	ex, err := findExisting()
	if err != nil {
		return nil, err
	}
	n := opts.Need
	if !n.Worker && (!n.Temporal || ex.temporal != "") && (!n.S3 || ex.s3 != "") {
		return joinExisting(ctx, opts, ex)
	}
	l := layout{opts.Root}
	if err := l.makeFolders(); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	for hangUps := 0; ; {
		wire, err := connectOrStart(ctx, l, opts)
		if err != nil {
			return nil, err
		}
		lease, err := joinAt(ctx, wire, opts, ex)
		if !errors.Is(err, errStopping) {
			return lease, err
		}
		if errors.Is(err, errHungUp) {
			hangUps++
		}
		if hangUps == maxHangUps {
			return nil, fmt.Errorf("join the local stack: its supervisor died %d times\nthe end of %s:\n%s",
				hangUps, l.supervisorLog(), logTail(l.supervisorLog(), 0))
		}
		if !sleep(ctx, 50*time.Millisecond) {
			return nil, fmt.Errorf("join the local stack: %w", ctx.Err())
		}
	}
}

// joinExisting is the lease of a command whose environment selects all that it needs.
func joinExisting(ctx context.Context, opts Options, ex existing) (*Lease, error) {
	if err := ex.check(ctx, opts, opts.Progress); err != nil {
		return nil, err
	}
	l := newLease(nil, opts)
	l.addresses = ex.addresses(opts)
	go l.sampleUntilClosed()
	return l, nil
}

// maxHangUps is how often a supervisor may vanish before it answers. Once happens when we meet one
// that is about to end.
const maxHangUps = 5

// errStopping says that the supervisor that we reached is about to end: ask for another.
var errStopping = errors.New("the stack is stopping")

// joinAt asks a supervisor for what is needed.
func joinAt(ctx context.Context, w *wire, opts Options, ex existing) (*Lease, error) {
	l := newLease(w, opts)
	r, err := l.question(ctx, ex.request(opts))
	switch {
	case err != nil && ctx.Err() == nil: // it hung up before answering: it ends, or died
		w.close()
		return nil, fmt.Errorf("%w: %w", errStopping, errHungUp)
	case err != nil:
		l.Close()
		return nil, fmt.Errorf("join the local stack: %w", ctx.Err())
	case r.Kind == "stopping":
		w.close()
		return nil, errStopping
	case r.Kind != "ready":
		l.Close()
		return nil, errors.New(r.Text)
	}
	l.addresses = r.Addresses
	return l, nil
}

// connectOrStart connects to the supervisor of the root folder, starting one if there is none. Of
// commands that come at once, one starts it and the others wait for that.
func connectOrStart(ctx context.Context, l layout, opts Options) (*wire, error) {
	if w := connect(ctx, l); w != nil {
		return w, nil
	}
	lock, err := waitLock(ctx, l.startLock())
	if err != nil {
		return nil, fmt.Errorf("start the local stack: %w", err)
	}
	defer lock.release()
	if w := connect(ctx, l); w != nil { // somebody else was faster
		return w, nil
	}
	opts.Progress("starting the local stack in " + l.root)
	return startSupervisor(ctx, l, opts)
}

// connect returns nil if nobody listens.
func connect(ctx context.Context, l layout) *wire {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", l.socket())
	if err != nil {
		return nil
	}
	return newWire(conn)
}

// startSupervisor starts a detached supervisor and waits until it listens. A supervisor that is
// still stopping makes the new one wait for its lock.
func startSupervisor(ctx context.Context, l layout, opts Options) (*wire, error) {
	log, offset, err := openLog(l.supervisorLog())
	if err != nil {
		return nil, err
	}
	defer log.Close()
	text, err := json.Marshal(opts)
	if err != nil {
		return nil, fmt.Errorf("encode options: %w", err)
	}
	cmd := exec.Command(opts.Supervisor[0], opts.Supervisor[1:]...)
	cmd.Env = append(os.Environ(), optionsVariable+"="+string(text))
	cmd.Stdout, cmd.Stderr = log, log
	// A session of its own: the terminal's Ctrl-C is for the command, whose lease then ends.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start the stack's supervisor: %w", err)
	}
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }()
	for {
		if w := connect(ctx, l); w != nil {
			return w, nil
		}
		select {
		case <-ended:
			return nil, fmt.Errorf("start the stack's supervisor: %s\nthe end of %s:\n%s",
				cmd.ProcessState, l.supervisorLog(), logTail(l.supervisorLog(), offset))
		case <-ctx.Done():
			// Nobody joins it, so that it ends by itself; ended now, it ends sooner.
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return nil, fmt.Errorf("start the stack's supervisor: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
