package stack

import (
	"errors"
	"fmt"
	"time"
)

// takeOverPause is the pause between checks whether another supervisor has taken over.
const takeOverPause = 50 * time.Millisecond

// hold keeps the lease on a supervisor. If the supervisor dies, hold joins the next one, which it starts itself if no
// other command does. The servers come back at their old addresses, so that the command's clients continue. A
// supervisor that was asked to stop says so first, which is a loss.
func (l *Lease) hold() {
	quick := 0
	for {
		joined := time.Now()
		<-l.current().ended
		if l.over() {
			return
		}
		if time.Since(joined) >= l.opts.tuning.quickDeath {
			quick = 0
		}
		quick++
		log := layout{l.opts.Root}.supervisorLog()
		if quick > l.opts.tuning.maxQuick {
			l.lose(fmt.Errorf("%w: its supervisor died %d times in a row\nthe end of %s:\n%s", ErrLost, quick, log,
				logTail(log, 0)))
			return
		}
		l.opts.Progress("the local stack's supervisor has died: joining the next one")
		if err := l.takeOver(); err != nil {
			l.lose(fmt.Errorf("%w: its supervisor has died and no other could take over: %w", ErrLost, err))
			return
		}
	}
}

// takeOver joins the next supervisor.
func (l *Lease) takeOver() error {
	k, addresses, err := reach(l.ctx, l.opts, l.existing, l.hear)
	if err != nil {
		return err
	}
	if err := l.sameAddresses(addresses); err != nil {
		k.wire.close()
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		k.wire.close()
		return errors.New("the lease was closed")
	}
	l.link.wire.close()
	l.link = k
	return nil
}

// sameAddresses returns an error if the stack came back at other addresses: the command's clients would not find it.
func (l *Lease) sameAddresses(now Addresses) error {
	n, was := l.opts.Need, l.addresses
	if n.Temporal && (now.Temporal != was.Temporal || now.Namespace != was.Namespace) {
		return fmt.Errorf("the Temporal server was at %s and is now at %s: something else has taken its port",
			was.Temporal,
			now.Temporal)
	}
	if n.S3 && (now.S3Endpoint != was.S3Endpoint || now.S3Bucket != was.S3Bucket) {
		return fmt.Errorf("the S3 server was at %s and is now at %s: something else has taken its port", was.S3Endpoint,
			now.S3Endpoint)
	}
	if n.S3 && (now.AccessKey != was.AccessKey || now.SecretKey != was.SecretKey) {
		return fmt.Errorf("the S3 server has new credentials: %s was replaced", layout{l.opts.Root}.credentials())
	}
	return nil
}
