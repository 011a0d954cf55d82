package stack

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// link is one connection to a supervisor. A lease gets another link if its supervisor is killed.
type link struct {
	wire    *wire
	answers chan reply // ready, failed, stopping, peak, left
	ended   chan struct{}

	ask sync.Mutex // one question at a time
}

// newLink starts to read the supervisor's messages: progress and losses go to tell, answers to question.
func newLink(w *wire, tell func(reply)) *link {
	k := &link{wire: w, answers: make(chan reply, 8), ended: make(chan struct{})}
	go func() {
		defer close(k.ended)
		for {
			var r reply
			if k.wire.receive(&r) != nil {
				return
			}
			switch r.Kind {
			case "progress", "lost":
				tell(r)
			default:
				k.answers <- r
			}
		}
	}()
	return k
}

// errHungUp says that the supervisor closed the connection instead of answering.
var errHungUp = errors.New("it has hung up")

// answersTo lists the kinds of reply that answer each request.
var answersTo = map[string][]string{"join": {"ready", "failed", "stopping"}, "peak": {"peak"},
	"leave": {"left", "stopping"}}

// question sends a request and returns its answer. It ignores a late answer to a question that was given up.
func (k *link) question(ctx context.Context, q request) (reply, error) {
	k.ask.Lock()
	defer k.ask.Unlock()
	if err := k.wire.send(q); err != nil {
		select {
		case <-k.ended: // the cause of the error
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", errHungUp)
		case <-time.After(time.Second):
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", err)
		}
	}
	for {
		select {
		case r := <-k.answers:
			if slices.Contains(answersTo[q.Op], r.Kind) {
				return r, nil
			}
		case <-k.ended:
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", errHungUp)
		case <-ctx.Done():
			return reply{}, fmt.Errorf("ask the stack's supervisor: %w", ctx.Err())
		}
	}
}

// leave ends what was joined over a connection and closes the connection. The last command to leave waits until every
// part has stopped.
func leave(k *link, o Options) error {
	defer k.wire.close()
	grace := 3 * o.tuning.stopTimeout
	ctx, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	r, err := k.question(ctx, request{Op: "leave"})
	if err != nil || !r.Last {
		return nil // others use the stack, or it has ended: there is nothing to wait for
	}
	select {
	case <-k.ended:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("stop the local stack: it is still running after %s; see %s", grace,
			layout{o.Root}.supervisorLog())
	}
}
