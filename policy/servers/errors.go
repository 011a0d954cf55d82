package servers

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/internal/openai"
	"github.com/ropewalk/ropewalk/policy"
)

// Fault is a reply that cannot be believed.
type Fault = openai.BadReply

// Mismatch says that a server's log-probabilities of the probe are not those of the weights that it was given. It is
// policy.ErrWrongVersion.
type Mismatch struct {
	Server    string
	Digest    string    // of the version that was published
	Expected  []float32 // our own forward pass
	Got       []float32
	Mean, Max float64 // absolute differences
	Tolerance float64
	Old       bool // the values are those of the version before
	Remedy    string
}

// Error implements error. It shows the place where the two differ most.
func (e *Mismatch) Error() string {
	worst := 0
	for i := range e.Got {
		if apart(e.Got[i], e.Expected[i]) > apart(e.Got[worst], e.Expected[worst]) {
			worst = i
		}
	}
	why := fmt.Sprintf("%.3g nats per token apart on average (at most %.3g are allowed)", e.Mean, e.Tolerance)
	if e.Old {
		why = fmt.Sprintf("%.3g nats per token apart on average: it still serves the version before", e.Mean)
	}
	out := fmt.Sprintf("server %s does not serve version %.16s: its log-probabilities of the probe are %s; at token "+
		"%d expected %.6g, got %.6g", e.Server, e.Digest, why, worst+1, e.Expected[worst], e.Got[worst])
	if e.Remedy != "" {
		out += "; " + e.Remedy
	}
	return out
}

// Unwrap makes the error policy.ErrWrongVersion.
func (e *Mismatch) Unwrap() error { return policy.ErrWrongVersion }

// wrongVersion says that a reply names other weights, or another model, than those that were published.
type wrongVersion struct{ Fault }

// Unwrap makes the error policy.ErrWrongVersion.
func (e *wrongVersion) Unwrap() error { return policy.ErrWrongVersion }

func (l *link) fault(format string, args ...any) error {
	return &Fault{Server: l.Name(), Text: l.client.Conceal(fmt.Sprintf(format, args...))}
}

func (l *link) otherVersion(format string, args ...any) error {
	return &wrongVersion{Fault{Server: l.Name(), Text: l.client.Conceal(fmt.Sprintf(format, args...)),
		Remedy: "another program has loaded weights into it, or it was restarted; give each run servers of its own"}}
}

// named puts the server's name before an error of the connection.
func (l *link) named(err error) error { return openai.Named(l.Name(), err) }

// kindOf returns the kind of an error of the connection; "" if it is another error.
func kindOf(err error) openai.Kind {
	var known *openai.Error
	if errors.As(err, &known) {
		return known.Kind
	}
	return ""
}
