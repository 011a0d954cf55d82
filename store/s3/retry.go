package s3

import (
	"context"
	"time"
)

// The waits between tries: 50 ms, doubling to 2 s, eleven tries, about 13 s in all. They are fixed:
// the callers of one store are a handful of workers, so spreading them by chance gains nothing.
const (
	tries     = 11
	firstWait = 50 * time.Millisecond
	longWait  = 2 * time.Second
)

// retry calls f until it succeeds, fails for good, has failed too often, or the context ends.
func retry(ctx context.Context, f func() error) error {
	wait := firstWait
	for try := 1; ; try++ {
		err := f()
		if err == nil || !passing(err) || try == tries {
			return err
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return err // what went wrong says more than that the time ran out
		}
		wait = min(2*wait, longWait)
	}
}
