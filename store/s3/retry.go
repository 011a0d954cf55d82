package s3

import (
	"context"
	"time"
)

// The waits between tries: 50 ms, doubling to 2 s, eleven tries, about 13 s in all. They have no jitter: the callers of
// one store are a few workers, so jitter gains nothing.
const (
	tries     = 11
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// retry calls f until it succeeds, fails permanently, has failed too often, or the context ends.
func retry(ctx context.Context, f func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := f()
		if err == nil || !retryable(err) || try == tries {
			return err
		}
		if sleep(ctx, wait) != nil {
			return err // the cause says more than that the time ran out
		}
		wait = min(2*wait, longWait)
	}
}

// sleep waits, at most until the context ends.
func sleep(ctx context.Context, wait time.Duration) error {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
