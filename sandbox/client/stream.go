package client

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/ropewalk/ropewalk/internal/rescue"
	"github.com/ropewalk/ropewalk/sandbox"
	"github.com/ropewalk/ropewalk/sandbox/rpc"
)

// errVersion means that the node uses another version of the protocol.
var errVersion = errors.New("the service speaks another version of the protocol")

// stream communicates with the node until the stream ends. It reports whether the node ever answered.
func (n *node) stream() (met bool, err error) {
	ctx, cancel := context.WithCancel(n.authorized(n.client.life))
	defer cancel()
	n.conn.ResetConnectBackoff() // live itself waits between attempts
	conn, err := rpc.NewSandboxClient(n.conn).Run(ctx)
	if err != nil {
		return false, err
	}
	silence := n.client.o.Silence
	watchdog := time.AfterFunc(silence, cancel)
	defer watchdog.Stop()
	sending := make(chan struct{})
	defer func() { cancel(); <-sending }()
	begun := false
	defer func() {
		if !begun {
			close(sending)
		}
	}()
	for {
		in, err := conn.Recv()
		if err != nil {
			if ctx.Err() != nil && n.client.life.Err() == nil && !watchdog.Stop() {
				err = fmt.Errorf("it has said nothing for %s", silence)
			}
			return begun, err
		}
		watchdog.Reset(silence)
		if err := n.handle(in, cancel); err != nil {
			return begun, err
		}
		if !begun {
			begun = true
			go func() {
				defer close(sending)
				if err := rescue.Do(func() error { n.send(ctx, conn); return nil }); err != nil {
					slog.Error("send calls to a sandbox service", "error", err, "stack", rescue.Stack(err))
					cancel()
				}
			}()
		}
	}
}

// handle processes one response.
func (n *node) handle(in *rpc.RunResponse, leave context.CancelFunc) error {
	c := n.client
	now := time.Now()
	c.mu.Lock()
	defer c.mu.Unlock()
	if at := in.GetNode(); at != nil {
		if at.GetVersion() != rpc.Version {
			return fmt.Errorf("%w: %d, this client speaks %d", errVersion, at.GetVersion(), rpc.Version)
		}
		changed := !n.ready || n.draining != at.GetDraining()
		n.ready, n.draining, n.refused, n.fault, n.leave = true, at.GetDraining(), false, nil, leave
		n.workers = max(int(at.GetWorkers()), 1)
		n.tier = sandbox.Tier(at.GetTier())
		if changed {
			if n.weak() {
				slog.Warn("left out a sandbox service that isolates too weakly", "address", n.address, "tier", n.tier,
					"want", c.least)
			}
			c.updateReady()
		}
	}
	for _, a := range in.GetAnswers() {
		n.answered(a, now)
	}
	if n.draining {
		n.takeBack()
	}
	c.dispatch()
	return nil
}

// takeBack returns the calls that a draining node has not been sent, and ends the stream once no call is left.
func (n *node) takeBack() {
	for _, f := range n.outbox {
		if n.calls[f.key] == f {
			delete(n.calls, f.key)
			f.off(n)
			n.client.failed(f, rpc.ErrDraining)
		}
	}
	n.outbox = nil
	if len(n.calls) == 0 && n.leave != nil {
		n.leave()
	}
}

// mostSent is roughly how many bytes of tasks one request contains, if it has more than one task.
const mostSent = 1 << 20

// send sends tasks to the node. The first is sent at once; tasks that arrive while a request is being sent go together
// in the next one. It blocks while the node reads nothing.
func (n *node) send(ctx context.Context, conn rpc.Sandbox_RunClient) {
	for {
		out := n.next()
		if out == nil {
			select {
			case <-n.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		if conn.Send(out) != nil {
			return // Recv returns the reason
		}
	}
}

// next returns the next request; nil if there is nothing to send.
func (n *node) next() *rpc.RunRequest {
	n.client.mu.Lock()
	defer n.client.mu.Unlock()
	out := &rpc.RunRequest{Cancel: n.cancelled}
	n.cancelled = nil
	used, size := 0, 0
	for used < len(n.outbox) && len(out.Tasks) < min(n.client.o.Preset.Batch, rpc.MostTasks) {
		f := n.outbox[used]
		if !f.over && n.calls[f.key] == f {
			if size += proto.Size(f.task); size > mostSent && len(out.Tasks) > 0 {
				break
			}
			out.Tasks = append(out.Tasks, f.task)
		}
		used++
	}
	clear(n.outbox[:used])
	n.outbox = n.outbox[used:]
	if len(out.Tasks) == 0 && len(out.Cancel) == 0 {
		return nil
	}
	return out
}
