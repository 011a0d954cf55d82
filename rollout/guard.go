package rollout

import (
	"context"
	"errors"
	"fmt"
	"math"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/ropewalk/ropewalk/env"
	"github.com/ropewalk/ropewalk/internal/rescue"
)

// Environments are code of others. Each call of one is bounded: in time, in the bytes that it may return, and in the
// values that its results may have. What breaks a bound gives an error that wraps ErrEnvironment, and never a reward.

// ErrEnvironment is the cause of every error about an environment that broke its contract.
var ErrEnvironment = errors.New("the environment broke its contract")

// Limits of one call of an environment.
const (
	// callLimit is long enough for an environment that asks a server, and bounds one that never returns.
	callLimit = 5 * time.Minute
	// maxSeenBytes bounds the texts of an observation, its admissible actions included.
	maxSeenBytes = 1 << 20
	// maxSeenPieces bounds the number of parts and of admissible actions; empty ones also take memory.
	maxSeenPieces = 1 << 16
	// maxStateBytes bounds a state, and the text of a situation and of an instruction.
	maxStateBytes = 1 << 20
	// maxAbandoned bounds the calls of a loop that have not returned within their limit. Go cannot end them, so each
	// keeps its goroutine and its memory.
	maxAbandoned = 16
)

// guard bounds the calls of one environment. It is safe for concurrent use.
type guard struct {
	limit     time.Duration
	abandoned atomic.Int32
}

// call runs f in its own goroutine and returns its error, or an error that wraps ErrEnvironment for a call that
// panicked or has not returned within the limit. f must write to no variable that the caller reads after an error.
func (g *guard) call(ctx context.Context, f func(ctx context.Context) error) error {
	if n := g.abandoned.Load(); n >= maxAbandoned {
		return fmt.Errorf("%w: %d earlier calls have not returned", ErrEnvironment, n)
	}
	ctx, cancel := context.WithTimeout(ctx, g.limit)
	defer cancel()
	ended := make(chan error, 1)
	go func() { ended <- rescue.Do(func() error { return f(ctx) }) }()
	select {
	case err := <-ended:
		return broken(err)
	case <-ctx.Done():
	}
	select { // a call that ends with its context reports its own error
	case err := <-ended:
		return broken(err)
	default:
	}
	if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return ctx.Err()
	}
	g.abandoned.Add(1)
	go func() {
		<-ended
		g.abandoned.Add(-1)
	}()
	return fmt.Errorf("%w: a call has not returned within %s", ErrEnvironment, g.limit)
}

// bounded returns what one call of an environment returns, within the guard's limits.
func bounded[T any](ctx context.Context, g *guard, f func(ctx context.Context) (T, error)) (out T, err error) {
	got := make(chan T, 1)
	err = g.call(ctx, func(ctx context.Context) error {
		v, err := f(ctx)
		if err == nil {
			got <- v
		}
		return err
	})
	if err == nil {
		out = <-got
	}
	return out, err
}

// broken marks a panic as the environment's.
func broken(err error) error {
	var p *rescue.Panic
	if errors.As(err, &p) {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	return err
}

// checkSeen refuses an observation that the record or a sampler cannot hold.
func checkSeen(o env.Observation) error {
	if n := len(o.Parts) + len(o.Admissible); n > maxSeenPieces {
		return fmt.Errorf("%w: the observation has %d parts and actions, the limit is %d", ErrEnvironment, n,
			maxSeenPieces)
	}
	bytes := 0
	for _, p := range o.Parts {
		bytes += len(p.Text)
	}
	for _, a := range o.Admissible {
		bytes += len(a)
	}
	if bytes > maxSeenBytes {
		return fmt.Errorf("%w: the observation has %d bytes, the limit is %d", ErrEnvironment, bytes, maxSeenBytes)
	}
	for i, p := range o.Parts {
		if !utf8.ValidString(p.Text) {
			return fmt.Errorf("%w: part %d of the observation is not UTF-8", ErrEnvironment, i)
		}
	}
	for i, a := range o.Admissible {
		if !utf8.ValidString(a) {
			return fmt.Errorf("%w: admissible action %d is not UTF-8", ErrEnvironment, i)
		}
	}
	if _, err := readable(o); err != nil {
		return fmt.Errorf("%w: %w", ErrEnvironment, err)
	}
	return nil
}

// checkText refuses a text that is too long to keep.
func checkText(name string, bytes int) error {
	if bytes > maxStateBytes {
		return fmt.Errorf("%w: the %s has %d bytes, the limit is %d", ErrEnvironment, name, bytes, maxStateBytes)
	}
	return nil
}

// checkTransition refuses the result of an action that cannot be one.
func checkTransition(state env.State, t env.Transition) error {
	switch {
	case math.IsNaN(t.Reward) || math.IsInf(t.Reward, 0):
		return fmt.Errorf("%w: the reward is %g", ErrEnvironment, t.Reward)
	case t.Success && !t.Done:
		return fmt.Errorf("%w: it reports success before the episode's end", ErrEnvironment)
	case state == nil && !t.Done:
		return fmt.Errorf("%w: it returned no state", ErrEnvironment)
	}
	if err := checkText("state", len(state)); err != nil {
		return err
	}
	return checkSeen(t.Observation)
}
