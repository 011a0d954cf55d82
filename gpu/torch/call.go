package torch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"syscall"
	"time"

	"github.com/ropewalk/ropewalk/gpu/wire"
)

// roomForTable is the space in bytes that a body may need in addition to its arrays' data.
const roomForTable = 64 << 10

// dispatch handles one message of the engine.
func (p *process) dispatch(f wire.Frame) error {
	e, err := wire.Peek(f.Header)
	if err != nil {
		return err
	}
	switch e.Type {
	case wire.TypeBeat:
		var b wire.Beat
		if err := wire.Decode(f.Header, &b); err != nil {
			return err
		}
		p.pulse.beat(b)
		return nil
	case wire.TypeError:
		if e.ID == 0 {
			return p.protocolError(f)
		}
		fallthrough
	case wire.TypeAnswer:
		select {
		case p.answers <- f:
			return nil
		default:
			return fmt.Errorf("%w: an answer to call %d, to which there was one", wire.ErrProtocol, e.ID)
		}
	}
	return fmt.Errorf("%w: a message of type %q", wire.ErrProtocol, e.Type)
}

// protocolError is the engine's report that the host broke the protocol.
func (p *process) protocolError(f wire.Frame) error {
	var e wire.Error
	if err := wire.Decode(f.Header, &e); err != nil {
		return err
	}
	return fmt.Errorf("%w: the engine says: %s: %s", wire.ErrProtocol, e.Kind, e.Message)
}

// fail ends the process after an error of reading.
func (p *process) fail(err error) {
	if !errors.Is(err, wire.ErrProtocol) {
		p.end(lostDied, "its connection ended")
		return
	}
	p.endOnBreach(err)
}

// endOnBreach tells the engine that it has broken the protocol, and ends it.
func (p *process) endOnBreach(err error) {
	_ = p.conn.SetWriteDeadline(time.Now().Add(time.Second))
	_ = p.write(wire.Error{Type: wire.TypeError, Kind: wire.KindProtocol, Message: err.Error()})
	p.end(lostBroke, err.Error())
}

func (p *process) write(message any, arrays ...wire.Array) error {
	p.writing.Lock()
	defer p.writing.Unlock()
	return wire.WriteFrame(p.conn, message, arrays...)
}

// outgoing is one call on its way.
type outgoing struct {
	name    string
	message func(wire.Head) any
	arrays  []wire.Array
	answer  uint64 // bytes of the answer's arrays at most
	trains  bool   // the call is part of training
}

// call sends a call and waits for its answer, which may be an error message of the engine. Meanwhile it watches the
// engine: a cancelled context cancels the call; a call that makes no progress or does not stop ends the process.
func (p *process) call(ctx context.Context, c outgoing) (wire.Frame, error) {
	p.lastID++
	id := p.lastID
	p.pulse.begin(id, c.name)
	defer p.pulse.finish()
	p.reader.Expect(c.answer + roomForTable)
	// The engine may have stopped reading, so the goroutine that writes cannot also watch.
	unsent := make(chan error, 1)
	go func() { unsent <- p.write(c.message(wire.Begin(id, c.name)), c.arrays...) }()
	look := time.NewTicker(min(time.Second, max(p.opts.HangLimit/20, 10*time.Millisecond)))
	defer look.Stop()
	cancelled, patience := ctx.Done(), (<-chan time.Time)(nil)
	for {
		select {
		case f := <-p.answers:
			return f, p.checkAnswer(f, id)
		case err := <-unsent:
			if err != nil {
				return wire.Frame{}, p.writeError(err)
			}
		case <-p.done:
			return wire.Frame{}, p.lost
		case <-cancelled:
			cancelled = nil
			patience = time.After(p.opts.CancelLimit)
			go func() { _ = p.write(wire.Cancel{Type: wire.TypeCancel, ID: id}) }()
		case <-patience:
			p.end(lostStubborn, fmt.Sprintf("killed: it did not stop within %s of being cancelled", p.opts.CancelLimit))
			return wire.Frame{}, fmt.Errorf("%w (%w)", ctx.Err(), p.lost)
		case <-look.C:
			if still := p.pulse.idleTime(); still > p.opts.HangLimit {
				p.endHung(still)
				return wire.Frame{}, p.lost
			}
		}
	}
}

// writeError returns the error of a call that could not be written. A call that could not be encoded has not changed
// the stream.
func (p *process) writeError(err error) error {
	var broken *net.OpError
	if !errors.As(err, &broken) {
		return bad("%v", err)
	}
	select {
	case <-p.done: // the reader knows the reason better: the engine may have given it before it closed
	case <-time.After(time.Second):
		p.end(lostDied, "its connection ended: "+err.Error())
	}
	return p.lost
}

// checkAnswer compares an answer with its call.
func (p *process) checkAnswer(f wire.Frame, id uint64) error {
	e, err := wire.Peek(f.Header)
	if err == nil && e.ID != id {
		err = fmt.Errorf("%w: an answer to call %d while %d was asked", wire.ErrProtocol, e.ID, id)
	}
	if err != nil {
		p.endOnBreach(err)
		return p.lost
	}
	return nil
}

// endHung asks every rank for the stacks of its threads and kills them all. A quarter of the time that it allows for
// stacks without a new line means that all are written.
func (p *process) endHung(still time.Duration) {
	mark := p.lines.mark()
	p.tree.signalRanks(syscall.SIGUSR1)
	const looks = 20
	stacks, quiet := "", 0
	for range looks {
		time.Sleep(p.opts.stackGrace / looks)
		now := p.lines.since(mark, maxTail)
		if now != stacks {
			stacks, quiet = now, 0
		} else if quiet++; stacks != "" && quiet >= looks/4 {
			break
		}
	}
	if stacks == "" {
		stacks = "none: no rank answered within " + p.opts.stackGrace.String()
	}
	p.endWith(lostHung, fmt.Sprintf("killed: nothing got done for %s", still.Round(10*time.Millisecond)), stacks)
}
