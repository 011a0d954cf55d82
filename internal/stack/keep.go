package stack

import (
	"context"
	"fmt"
	"sync"
	"time"
)

const (
	lookPeriod   = 100 * time.Millisecond // between looks at what the supervisors tell
	samplePeriod = 2 * time.Second        // between samples of memory
)

// keep watches the servers that the lease uses, each by itself, until the context ends: the worker comes back only when
// its servers have. Measuring the memory of a large process takes milliseconds: the pause grows with the cost, so that
// it stays below half a percent of a core.
func (l *Lease) keep(ctx context.Context) {
	defer close(l.kept)
	var watched sync.WaitGroup
	defer watched.Wait()
	for _, u := range l.uses {
		watched.Go(func() { l.watch(ctx, u) })
	}
	for pause := samplePeriod; sleep(ctx, pause); {
		began := time.Now()
		l.sample()
		pause = max(samplePeriod, 200*time.Since(began))
	}
}

// watch shows what a server's supervisors say until a server is lost. If one has died, it joins the next one.
func (l *Lease) watch(ctx context.Context, u *use) {
	for sleep(ctx, lookPeriod) && l.Err() == nil {
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
		}
	}
}

// lose notes why the lease is lost, unless it has been closed. The first reason counts.
func (l *Lease) lose(ctx context.Context, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if ctx.Err() != nil || l.err != nil {
		return
	}
	l.err = fmt.Errorf("%w: %w", errLost, err)
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
