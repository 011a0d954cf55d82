package stack

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"

	"golang.org/x/sys/unix"
)

// holder is the supervisor's side of a lease.
type holder struct {
	wire *wire
	sup  *supervisor
	pid  int // of the command, as the kernel reports it; 0 if unknown

	mu   sync.Mutex
	need Need
}

// peerPID asks the kernel which process is at the other end.
func peerPID(conn *net.UnixConn) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	pid := 0
	_ = raw.Control(func(fd uintptr) {
		if c, err := unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED); err == nil {
			pid = int(c.Pid)
		}
	})
	return pid
}

// serve answers requests until the connection ends; then the lease ends. A join runs concurrently, so that serve
// notices a command that leaves while parts start.
func (h *holder) serve() {
	ctx, cancel := context.WithCancelCause(h.sup.ctx)
	defer cancel(errors.New("the command has left"))
	var joins sync.WaitGroup
	for {
		var r request
		if h.wire.receive(&r) != nil {
			break
		}
		switch r.Op {
		case "join":
			joins.Go(func() { _ = h.wire.send(h.join(ctx, r)) })
		case "peak":
			_ = h.wire.send(reply{Kind: "peak", Bytes: h.sup.memory.peak(h, r.Reset),
				Others: len(h.sup.holders()) - 1})
		case "leave":
			last := h.sup.remove(h)
			_ = h.wire.send(reply{Kind: "left", Last: last})
			if last {
				return // shutdown closes the connection at its end; the command waits for that
			}
		}
	}
	cancel(errors.New("the command has left"))
	joins.Wait()
	h.sup.remove(h)
	h.wire.close()
}

func (h *holder) join(ctx context.Context, r request) reply {
	if err := h.agree(r); err != nil {
		return failed("failed", err)
	}
	h.mu.Lock()
	h.need = r.Need
	h.mu.Unlock()
	a, err := h.sup.ensure(ctx, r.Need)
	if err != nil {
		return failed("failed", err)
	}
	return reply{Kind: "ready", Addresses: a}
}

// agree returns an error if the command's environment selects other servers or names than this stack has.
func (h *holder) agree(r request) error {
	a, e := h.sup.currentAddresses(), h.sup.existing
	for _, s := range []struct{ what, want, have, current string }{
		// A child that was given our Env may select the local server's own address.
		{"Temporal", r.Temporal, e.temporal, a.Temporal},
		{"S3", r.S3, e.s3, a.S3Endpoint},
		{"namespace", r.Namespace, a.Namespace, a.Namespace},
		{"bucket", r.Bucket, a.S3Bucket, a.S3Bucket},
	} {
		if s.want != s.have && (s.want == "" || s.want != s.current) {
			return fmt.Errorf("join the running stack in %s: its %s is %s, this command's environment selects %s: "+
				"end the commands that use it first, or set ROPEWALK_HOME to another folder",
				h.sup.opts.Root, s.what, named(s.have), named(s.want))
		}
	}
	return nil
}

func named(address string) string {
	if address == "" {
		return "a local one"
	}
	return address
}

func (h *holder) needs(part string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch part {
	case partTemporal:
		return h.need.Temporal
	case partS3:
		return h.need.S3
	default:
		return h.need.Worker
	}
}
