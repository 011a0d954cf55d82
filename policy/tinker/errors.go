package tinker

import (
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// Fault is a reply that cannot be believed, or a request that the server could not carry out.
type Fault = openai.BadReply

// Mismatch says that a server's log-probabilities of the probe are not those that its weights should give. It is
// policy.ErrWrongVersion.
type Mismatch struct {
	Server, With string // With is what they were compared with
	At           int    // the token at which the two differ most
	Want, Got    float32
	Mean         float64 // difference
	Tolerance    float64
	Remedy       string
}

// Error implements error.
func (e *Mismatch) Error() string {
	return fmt.Sprintf("server %s: its log-probabilities of the probe are %.3g nats per token from those of %s on "+
		"average (at most %.3g are allowed); at token %d expected %.6g, got %.6g; %s", e.Server, e.Mean, e.With,
		e.Tolerance, e.At, e.Want, e.Got, e.Remedy)
}

// Unwrap makes the error policy.ErrWrongVersion.
func (e *Mismatch) Unwrap() error { return policy.ErrWrongVersion }

func bad(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{policy.ErrBadRequest}, args...)...)
}

func (l *link) fault(format string, args ...any) error {
	return &Fault{Server: l.Name(), Text: l.client.Conceal(fmt.Sprintf(format, args...))}
}

// lost makes an error one after which nothing is known of the models at the server.
func lost(err error) error {
	if err == nil || errors.Is(err, policy.ErrLost) {
		return err
	}
	return fmt.Errorf("%w: %w", policy.ErrLost, err)
}

// named puts the server's name before an error of the connection.
func (l *link) named(err error) error { return openai.Named(l.Name(), err) }

// statusOf returns the HTTP status of a reply that is no success; 0 for other errors.
func statusOf(err error) int {
	var known *openai.Error
	if errors.As(err, &known) {
		return known.Status
	}
	return 0
}

// gone reports whether an error says that the server has no such model, session or path.
func gone(err error) bool {
	if s := statusOf(err); s == http.StatusNotFound || s == http.StatusGone {
		return true
	}
	if err == nil {
		return false
	}
	text := strings.ToLower(err.Error())
	return strings.Contains(text, "not loaded") || strings.Contains(text, "not found")
}
