package torch

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/ropewalk/ropewalk/gpu/setup"
	"github.com/ropewalk/ropewalk/gpu/wire"
)

// helloLimit is how long a connection may take to send its hello.
const helloLimit = 10 * time.Second

// errStranger is the error of a connection that does not know this start's nonce. It is not our engine, which may still
// connect.
var errStranger = errors.New("it does not know this start's nonce")

type greeting struct {
	conn   net.Conn
	reader *wire.Reader
	hello  wire.Hello
	err    error
}

// acceptEngine accepts the first connection that knows the nonce and refuses others. It also refuses our engine, and
// the start fails, if the engine has another version or other settings than those it was started with.
func (p *process) acceptEngine(
	ctx context.Context, l net.Listener, nonce string,
) (net.Conn, *wire.Reader, wire.Hello, error) {
	heard := make(chan greeting)
	over, stop := context.WithCancel(ctx)
	defer stop()
	go accept(over, l, func(conn net.Conn) {
		g := p.readHello(conn, nonce)
		if g.err != nil {
			conn.Close()
		}
		select {
		case heard <- g:
		case <-over.Done():
			conn.Close()
		}
	})
	var refused error
	for {
		select {
		case g := <-heard:
			if !errors.Is(g.err, errStranger) {
				return g.conn, g.reader, g.hello, g.err
			}
			refused = g.err
			p.opts.Logger.Warn("turned away a connection to the engine's socket", "error", g.err)
		case <-p.exit.done:
			how := "exit status 0"
			if p.exit.err != nil {
				how = p.exit.err.Error()
			}
			return nil, nil, wire.Hello{}, errors.Join(fmt.Errorf("it ended before it greeted: %s", how), refused)
		case <-ctx.Done():
			return nil, nil, wire.Hello{}, errors.Join(context.Cause(ctx), refused)
		}
	}
}

// accept passes every connection to take, in its own goroutine, until the listener closes.
func accept(ctx context.Context, l net.Listener, take func(net.Conn)) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if ctx.Err() != nil {
			conn.Close()
			return
		}
		go take(conn)
	}
}

// readHello reads the hello of a connection and answers it.
func (p *process) readHello(conn net.Conn, nonce string) greeting {
	g := greeting{conn: conn, reader: wire.NewReader(conn, 0)}
	_ = conn.SetDeadline(time.Now().Add(helloLimit))
	defer func() { _ = conn.SetDeadline(time.Time{}) }()
	f, err := g.reader.Next()
	if err == nil {
		err = wire.Decode(f.Header, &g.hello)
	}
	if err == nil && g.hello.Type != wire.TypeHello {
		err = fmt.Errorf("%w: the first message is %q", wire.ErrProtocol, g.hello.Type)
	}
	if err != nil {
		_ = wire.WriteFrame(conn, wire.Error{Type: wire.TypeError, Kind: wire.KindProtocol, Message: err.Error()})
		g.err = fmt.Errorf("%w: %w", errStranger, err)
		return g
	}
	if g.err = p.judge(g.hello, nonce); g.err != nil {
		_ = wire.WriteFrame(conn, wire.Refused{Type: wire.TypeRefused, Reason: g.err.Error()})
		return g
	}
	g.err = wire.WriteFrame(conn, wire.Welcome{Type: wire.TypeWelcome, Protocol: wire.Version})
	return g
}

// judge returns what is wrong with a hello.
func (p *process) judge(h wire.Hello, nonce string) error {
	o := p.opts
	switch {
	case h.Nonce != nonce:
		return errStranger
	case h.Protocol != wire.Version:
		return fmt.Errorf("engine refused: it speaks protocol %d, this program %d", h.Protocol, wire.Version)
	case h.Ranks != o.Ranks*o.Hosts:
		return fmt.Errorf("engine refused: it has %d ranks, %d were started", h.Ranks, o.Ranks*o.Hosts)
	case h.Device != o.Device || h.Dtype != o.Dtype:
		return fmt.Errorf(
			"engine refused: it computes in %s on %s, asked for is %s on %s", h.Dtype, h.Device, o.Dtype, o.Device,
		)
	case o.Deterministic && !h.Deterministic:
		return errors.New("engine refused: it is not deterministic, though asked to be")
	}
	if err := o.LoRA.judge(h.LoRA); err != nil {
		return err
	}
	var more []setup.Package
	if o.LoRA != nil {
		more = append(more, setup.Peft())
	}
	if err := setup.Check(h.Versions, more...); err != nil {
		return fmt.Errorf("engine refused: it has %w", err)
	}
	return nil
}
