package gang

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
)

// ErrGone says that the gang of an invitation has ended, so there is nothing to do for it.
var ErrGone = errors.New("the gang is gone")

// ErrElsewhere says that this host cannot take the place, but another host could.
var ErrElsewhere = errors.New("no place for this host")

// Membership is a member's place in a gang. The caller must leave it.
type Membership struct {
	Work Work

	o      Options
	i      Invitation
	line   *line
	quit   chan struct{}
	orders chan Orders
	over   context.Context // ends, with ErrGone as its cause, when the leader disappears or ends the gang
	end    context.CancelCauseFunc
	left   sync.Once
}

// Join takes a place in a gang.
func Join(ctx context.Context, o Options, i Invitation) (*Membership, error) {
	conn, err := o.dial(ctx, i.Address)
	if err != nil {
		if ctx.Err() == nil && !errors.Is(err, ErrElsewhere) {
			err = fmt.Errorf("%w: %w", ErrGone, err)
		}
		return nil, fmt.Errorf("join the gang at %s: %w", i.Address, err)
	}
	l := newLine(conn)
	_ = l.write(message{Join: &join{ID: i.ID, Host: o.Host, Engine: o.Engine}}) // read says why it failed
	answer, err := l.read()
	switch {
	case err != nil && o.TLS.On(): // under TLS 1.3 a leader refuses a certificate after the member's handshake
		err = fmt.Errorf("%w: %w", ErrElsewhere, err)
	case err != nil:
		err = fmt.Errorf("%w: %w", ErrGone, err)
	case answer.Refused != nil && answer.Refused.Elsewhere:
		err = fmt.Errorf("%w: %s", ErrElsewhere, answer.Refused.Reason)
	case answer.Refused != nil:
		err = fmt.Errorf("%w: %s", ErrGone, answer.Refused.Reason)
	case answer.Welcome == nil:
		err = fmt.Errorf("%w: %w", ErrGone, errMessage)
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("join the gang at %s: %w", i.Address, err)
	}
	o.Logger = cmp.Or(o.Logger, slog.Default())
	p := &Membership{
		Work: *answer.Welcome, o: o, i: i, line: l, quit: make(chan struct{}), orders: make(chan Orders, 1),
	}
	p.over, p.end = context.WithCancelCause(context.Background())
	go l.beat(p.quit)
	go p.listen()
	return p, nil
}

// listen reads the leader's messages until the connection ends.
func (p *Membership) listen() {
	for {
		m, err := p.line.read()
		switch {
		case err != nil:
			err = fmt.Errorf("%w: the leader: %w", ErrGone, err)
		case m.Ended != nil:
			err = fmt.Errorf("%w: %s", ErrGone, *m.Ended)
		case m.Orders != nil && len(p.orders) == 0:
			p.orders <- *m.Orders
			continue
		default:
			err = fmt.Errorf("%w: the leader: %w", ErrGone, errMessage)
		}
		p.end(err)
		return
	}
}

// Context returns a context that ends with its parent, or with the gang. In the second case its cause is ErrGone.
func (p *Membership) Context(parent context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(parent)
	stop := context.AfterFunc(p.over, func() { cancel(context.Cause(p.over)) })
	return ctx, func() {
		stop()
		cancel(context.Canceled)
	}
}

// Ready tells the leader that this host has its devices, and waits for orders.
func (p *Membership) Ready(ctx context.Context) (Orders, error) {
	if err := p.line.write(message{Ready: true}); err != nil {
		return Orders{}, fmt.Errorf("%w: %w", ErrGone, err)
	}
	select {
	case o := <-p.orders:
		var err error
		if p.o.TLS.On() {
			o.Rendezvous, err = p.forward()
		}
		return o, err
	case <-p.over.Done():
		return Orders{}, context.Cause(p.over)
	case <-ctx.Done():
		return Orders{}, context.Cause(ctx)
	}
}

// Leave tells the leader why this host's ranks have ended, and closes the connection. Call it after the ranks have
// ended and the devices are released. A second call does nothing.
func (p *Membership) Leave(why string) {
	p.left.Do(func() {
		close(p.quit)
		_ = p.line.write(message{Ended: &why}) // the leader may have gone
		p.line.conn.Close()
		p.end(ErrGone)
	})
}
