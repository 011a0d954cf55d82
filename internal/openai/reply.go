package openai

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// BadReply is the error of a reply that cannot be believed, or of a request that the server could not carry out. It
// names the server, what is wrong and what may help.
type BadReply struct {
	Server, Text, Remedy string
}

// Error implements error.
func (e *BadReply) Error() string {
	out := fmt.Sprintf("server %s: %s", e.Server, e.Text)
	if e.Remedy != "" {
		out += "; " + e.Remedy
	}
	return out
}

// Named puts a server's name before an error of the connection. Other errors stay as they are.
func Named(server string, err error) error {
	if errors.As(err, new(*Error)) {
		return fmt.Errorf("server %s: %w", server, err)
	}
	return err
}

// Wait waits for a time, or until the context ends, and then returns the context's error.
func Wait(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
