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

// Join gives a command the stack that it needs. It joins the stack that runs in the root folder, starting what is
// missing, or starts a stack. It returns when everything that is needed is healthy. Servers that the environment
// selects are used as they are; if nothing else is needed, nothing is started.
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
	if err := ex.checkFirst(ctx, opts); err != nil {
		return nil, err
	}
	if err := (layout{opts.Root}).makeFolders(opts.Progress); err != nil {
		return nil, fmt.Errorf("make the state folder: %w", err)
	}
	lease := newLease(opts, ex)
	k, addresses, err := reach(ctx, opts, ex, lease.hear)
	if err != nil {
		lease.cancel()
		return nil, err
	}
	lease.link, lease.addresses = k, addresses
	go lease.hold()
	return lease, nil
}

// reach joins the supervisor of the root folder, or starts one and joins it. It returns the connection and the
// addresses once everything that is needed is healthy.
func reach(ctx context.Context, opts Options, ex existing, tell func(reply)) (*link, Addresses, error) {
	l := layout{opts.Root}
	for hangUps := 0; ; {
		wire, err := connectOrStart(ctx, l, opts)
		if err != nil {
			return nil, Addresses{}, err
		}
		k, addresses, err := joinAt(ctx, newLink(wire, tell), opts, ex)
		if !errors.Is(err, errStopping) {
			return k, addresses, err
		}
		if errors.Is(err, errHungUp) {
			hangUps++
		}
		if hangUps == maxHangUps {
			return nil, Addresses{},
				fmt.Errorf("join the local stack: its supervisor died %d times\nthe end of %s:\n%s",
					hangUps, l.supervisorLog(), logTail(l.supervisorLog(), 0))
		}
		if !sleep(ctx, takeOverPause) {
			return nil, Addresses{}, fmt.Errorf("join the local stack: %w", ctx.Err())
		}
	}
}

// joinExisting returns the lease of a command whose environment selects all servers that it needs.
func joinExisting(ctx context.Context, opts Options, ex existing) (*Lease, error) {
	if err := ex.check(ctx, opts, opts.Progress); err != nil {
		return nil, err
	}
	l := newLease(opts, ex)
	l.addresses = ex.addresses(opts)
	go l.sampleUntilClosed()
	return l, nil
}

// maxHangUps is how often a supervisor may disappear before it answers. It happens once if the supervisor was about to
// end.
const maxHangUps = 5

// errStopping says that the supervisor is about to end: connect to another one.
var errStopping = errors.New("the stack is stopping")

// joinAt asks a supervisor for what is needed. It closes a connection that it does not return.
func joinAt(ctx context.Context, k *link, opts Options, ex existing) (*link, Addresses, error) {
	r, err := k.question(ctx, ex.request(opts))
	switch {
	case err == nil && r.Kind == "ready":
		return k, r.Addresses, nil
	case err != nil && ctx.Err() == nil: // it hung up before answering: it is ending, or has died
		err = fmt.Errorf("%w: %w", errStopping, errHungUp)
	case err != nil:
		_ = leave(k, opts) // the reason why nothing was joined says more
		return nil, Addresses{}, fmt.Errorf("join the local stack: %w", ctx.Err())
	case r.Kind == "stopping":
		err = errStopping
	default:
		_ = leave(k, opts) // the reason why nothing was joined says more
		return nil, Addresses{}, r.failure()
	}
	k.wire.close()
	return nil, Addresses{}, err
}

// connectOrStart connects to the supervisor of the root folder, starting one if there is none. If several commands come
// at the same time, one starts it and the others wait.
func connectOrStart(ctx context.Context, l layout, opts Options) (*wire, error) {
	if w := connect(ctx, l); w != nil {
		return w, nil
	}
	lock, err := waitLock(ctx, l.startLock())
	if err != nil {
		return nil, fmt.Errorf("start the local stack: %w", err)
	}
	defer lock.release()
	if w := connect(ctx, l); w != nil { // another command was faster
		return w, nil
	}
	opts.Progress("starting the local stack in " + l.root)
	return startSupervisor(ctx, l, opts)
}

// connect returns nil if no supervisor listens.
func connect(ctx context.Context, l layout) *wire {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", l.socket())
	if err != nil {
		return nil
	}
	return newWire(conn)
}

// startSupervisor starts a detached supervisor and waits until it listens. If a supervisor is still stopping, the new
// one waits for its lock.
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
	// The supervisor gets a session of its own: Ctrl-C in the terminal goes to the command only, whose lease then ends.
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
			// No command joins it, so it would end by itself; the signal makes it end sooner.
			_ = cmd.Process.Signal(syscall.SIGTERM)
			return nil, fmt.Errorf("start the stack's supervisor: %w", ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}
