package stack

import (
	"context"
	"fmt"
	"time"
)

const (
	lookPeriod   = 100 * time.Millisecond // between looks at what the supervisors tell
	samplePeriod = 500 * time.Millisecond // between samples of memory
)

// keep watches the servers that the lease uses until the context ends or one of them is lost. Measuring the memory of a
// large process takes milliseconds: the pause grows with the cost, so that it stays below 2% of a core.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.kept)
	for next := time.Now(); sleep(ctx, lookPeriod); {
		if l.Err() == nil {
			l.check(ctx)
		}
		if began := time.Now(); began.After(next) {
			l.sample()
			next = began.Add(max(samplePeriod, 50*time.Since(began)))
		}
	}
}

// check shows what the supervisors have said since the last check. If one has died, it joins the next one.
func (l *Lease) check(ctx context.Context) {
	for _, u := range l.uses {
		alive, s, err := l.look(u)
		switch {
		case err != nil:
		case s.PID == u.joined && s.Failure != nil:
			err = s.Failure.err()
		case s.PID != u.joined || !alive:
			err = l.takeOver(ctx, u)
		}
		if err != nil {
			l.lose(ctx, err)
			return
		}
	}
}

// lose notes why the lease is lost, unless it has been closed.
func (l *Lease) lose(ctx context.Context, err error) {
	if ctx.Err() != nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.err = fmt.Errorf("%w: %w", ErrLost, err)
	close(l.lost)
}

// takeOver joins the next supervisor of a server, which it starts itself if no other command does. The server comes
// back at its old address, so that the command's clients continue.
func (l *Lease) takeOver(ctx context.Context, u *use) error {
	if time.Since(u.since) >= times.quickDeath {
		u.deaths = 0
	}
	u.deaths++
	if log := l.files.supervisorLog(); u.deaths > times.maxQuick {
		return fmt.Errorf("its supervisor died %d times in a row\nthe end of %s:\n%s", u.deaths, log, logTail(log, 0))
	}
	l.opts.Progress("the supervisor of " + titles[u.server] + " has died: joining the next one")
	s, err := l.await(ctx, u)
	if err == nil {
		err = l.sameAddresses(s)
	}
	if err != nil {
		return fmt.Errorf("its supervisor has died and no other could take over: %w", err)
	}
	return nil
}

// sameAddresses returns an error if a server came back at another address: the command's clients would not find it.
func (l *Lease) sameAddresses(s state) error {
	was := l.Addresses()
	now, err := l.files.with(was, s.Addresses)
	switch {
	case err != nil:
		return err
	case now.Temporal != was.Temporal:
		return fmt.Errorf("the Temporal server was at %s and is now at %s: something else has taken its port",
			was.Temporal, now.Temporal)
	case now.S3Endpoint != was.S3Endpoint:
		return fmt.Errorf("the S3 server was at %s and is now at %s: something else has taken its port", was.S3Endpoint,
			now.S3Endpoint)
	case now.AccessKey != was.AccessKey || now.SecretKey != was.SecretKey:
		return fmt.Errorf("the S3 server has new credentials: %s was replaced", l.files.credentials())
	}
	return nil
}
