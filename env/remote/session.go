package remote

import (
	"context"
	"errors"
	"fmt"
	"math"
	"unicode/utf8"
)

// ErrLost says that the other side has gone: its process has ended, or its connection is closed. It says nothing about
// the action, so a new session may repeat the episode.
var ErrLost = errors.New("the session is lost")

// Reply is what the other side shows after a reset or an action.
type Reply struct {
	Text   string
	Reward float64 // 0 after a reset
	Done   bool
	// Success is the other side's own word on whether the episode reached its goal; nil if it does not say.
	Success *bool
	// Refused means that the other side did not accept the action, which changed nothing. Text says why.
	Refused bool
	// Admissible are the actions that the other side accepts next; nil if it does not list them.
	Admissible []string
	// Type and Level are the task's, which the reply to a reset may hold: "" and 0 if it does not.
	Type  string
	Level int
	// Score says how far the episode came, from 0 to 1; nil if the other side does not say.
	Score *float64
}

// Session is one live episode. It is used by one goroutine at a time. After an error it is closed and not used again.
type Session interface {
	// Step applies an action. It returns within the port's time limit. An error that wraps ErrLost is the fault of no
	// action.
	Step(ctx context.Context, action string) (Reply, error)
	// Close ends the episode. A second call does nothing.
	Close()
}

// Port begins episodes. It is safe for concurrent use, and a failed call can be repeated.
type Port interface {
	// Begin opens a session and resets it to a task, within the port's time limits. The caller closes the session. Its
	// errors are those of Session.Step.
	Begin(ctx context.Context, task opening) (Session, Reply, error)
}

// counter is a port whose other side says how many tasks it has.
type counter interface {
	// Count returns the numbers of training tasks and of held-out ones.
	Count(ctx context.Context) (train, heldOut int, err error)
}

// solver is a session that knows how to solve its task.
type solver interface {
	// Solution returns the next actions, at least one, or env.ErrUnsolved. It changes nothing.
	Solution(ctx context.Context) ([]string, error)
}

// check refuses a reply that must not enter a record.
func (r Reply) check(maxBytes int) error {
	bytes := len(r.Text)
	for _, a := range r.Admissible {
		bytes += len(a)
	}
	switch {
	case math.IsNaN(r.Reward) || math.IsInf(r.Reward, 0):
		return fmt.Errorf("the reward is %g, want a finite number", r.Reward)
	case len(r.Text) > maxBytes:
		return fmt.Errorf("the observation has %d bytes, and at most %d are allowed", len(r.Text), maxBytes)
	case bytes > maxBytes:
		return fmt.Errorf("the observation and %d admissible actions have %d bytes, and at most %d are allowed",
			len(r.Admissible), bytes, maxBytes)
	case !utf8.ValidString(r.Text):
		return fmt.Errorf("the observation is not UTF-8")
	}
	return nil
}
