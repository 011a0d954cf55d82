package remote

import (
	"context"
	"fmt"
	"math"
	"unicode/utf8"
)

// Reply is what the other side shows after a reset or an action.
type Reply struct {
	Text   string
	Reward float64 // 0 after a reset
	Done   bool
	// Success is the other side's own word on whether the episode reached its goal; nil if it does not say.
	Success *bool
}

// Session is one live episode. It is used by one goroutine at a time. After an error it is closed and not used again.
type Session interface {
	// Reset begins the episode of a seed.
	Reset(ctx context.Context, seed int) (Reply, error)
	// Step applies an action.
	Step(ctx context.Context, action string) (Reply, error)
	// Close ends the episode. A second call does nothing.
	Close()
}

// Port opens sessions. It is safe for concurrent use, and a failed call can be repeated.
type Port interface {
	// Open opens a session. The caller closes it.
	Open(ctx context.Context) (Session, error)
}

// check refuses a reply that must not enter a record.
func (r Reply) check(maxBytes int) error {
	switch {
	case math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0):
		return fmt.Errorf("the reward is %g, want a finite number", r.Reward)
	case len(r.Text) > maxBytes:
		return fmt.Errorf("the observation has %d bytes, and at most %d are allowed", len(r.Text), maxBytes)
	case !utf8.ValidString(r.Text):
		return fmt.Errorf("the observation is not UTF-8")
	}
	return nil
}
