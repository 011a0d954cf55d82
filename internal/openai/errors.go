package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Kind says what went wrong.
type Kind string

// The kinds. Another attempt may help with the first group alone.
const (
	Throttled   Kind = "throttled"   // the server has too many requests (429)
	Failing     Kind = "failing"     // the server reports a failure of its own (5xx, 408, 425)
	Unreachable Kind = "unreachable" // there is no connection
	Broken      Kind = "broken"      // the connection ended in the middle
	Hung        Kind = "hung"        // there was no whole reply in time
	Malformed   Kind = "malformed"   // the reply is not what the API says
	TooLong     Kind = "too long"    // the reply exceeds the bound

	Rejected Kind = "rejected"  // the server does not take the request (400, 413, 422 …)
	Denied   Kind = "denied"    // the key is missing or wrong (401, 403)
	NotFound Kind = "not found" // address or model are unknown (404), or the server redirects
	Setup    Kind = "setup"     // this worker has not what the client needs
)

// The bounds of the pauses between attempts.
const (
	firstPause = 500 * time.Millisecond
	mostPause  = 30 * time.Second
	mostAfter  = 2 * time.Minute // of what Retry-After may ask for
)

// messageBytes bounds what an error quotes of a server's text.
const messageBytes = 300

// Error is why a request has no reply. Its text holds no secret.
type Error struct {
	Kind Kind
	// After is how long the server asks to wait.
	After time.Duration
	// Status is the HTTP status of a reply that is no success; 0 = there was none.
	Status int
	text   string
}

// Error returns the text.
func (e *Error) Error() string { return e.text }

// Retry reports whether another attempt may help.
func (e *Error) Retry() bool {
	switch e.Kind {
	case Rejected, Denied, NotFound, Setup:
		return false
	}
	return true
}

// Pause is how long to wait after a number of attempts: what the server asks for, or twice as long each time.
func (e *Error) Pause(attempts int) time.Duration {
	if e.After > 0 {
		return min(e.After, mostAfter)
	}
	return min(firstPause<<min(attempts-1, 10), mostPause)
}

func (c *Client) fault(kind Kind, format string, args ...any) *Error {
	text := strings.Join(strings.Fields(fmt.Sprintf(format, args...)), " ")
	if len(text) > messageBytes {
		text = strings.ToValidUTF8(text[:messageBytes], "") + "…"
	}
	return &Error{Kind: kind, text: fmt.Sprintf("the model's server is %s: %s", kind, c.clean(&text))}
}

// broken names the kind of an error of the connection.
func (c *Client) broken(limited context.Context, limit time.Duration, kind Kind, err error) error {
	var timeout net.Error
	switch {
	case errors.Is(limited.Err(), context.Canceled):
		return limited.Err()
	case limited.Err() != nil, errors.As(err, &timeout) && timeout.Timeout():
		return c.fault(Hung, "no whole reply in %v", limit)
	}
	var dial *net.OpError
	if kind == Unreachable && (!errors.As(err, &dial) || dial.Op != "dial") && !errors.As(err, new(*net.DNSError)) {
		kind = Broken // there was a connection
	}
	// The error of http.Client repeats method and address, which may hold secrets.
	inner := errors.Unwrap(err)
	for ; inner != nil && strings.Contains(err.Error(), c.address.String()); inner = errors.Unwrap(err) {
		err = inner
	}
	return c.fault(kind, "%v", err)
}

// refused names the kind of a reply that is no success.
func (c *Client) refused(resp *http.Response) error {
	data, _ := io.ReadAll(io.LimitReader(resp.Body, 16<<10)) // a part of the explanation is good enough
	kind := Rejected
	switch code := resp.StatusCode; {
	case code == http.StatusTooManyRequests:
		kind = Throttled
	case code >= 500, code == http.StatusRequestTimeout, code == http.StatusTooEarly:
		kind = Failing
	case code == http.StatusUnauthorized, code == http.StatusForbidden:
		kind = Denied
	case code == http.StatusNotFound, code < 400:
		kind = NotFound
	}
	e := c.fault(kind, "it answers %s: %s", resp.Status, explanation(data))
	e.Status = resp.StatusCode
	e.After = retryAfter(resp.Header.Get("Retry-After"), time.Now())
	return e
}

// explanation is the message in the body of an error, or its text.
func explanation(data []byte) string {
	var said struct {
		Error   json.RawMessage `json:"error"`
		Message string          `json:"message"`
		Detail  string          `json:"detail"` // of servers that are made with FastAPI
	}
	if json.Unmarshal(data, &said) != nil {
		return string(data)
	}
	var inner struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(said.Error, &inner) == nil && inner.Message != "" {
		return inner.Message
	}
	if text := cmp.Or(said.Message, said.Detail); text != "" {
		return text
	}
	return string(data)
}

// retryAfter reads the header: seconds or a date. 0 means that it says nothing.
func retryAfter(text string, now time.Time) time.Duration {
	if seconds, err := strconv.ParseFloat(text, 64); err == nil && seconds > 0 {
		return time.Duration(min(seconds, mostAfter.Seconds()) * float64(time.Second))
	}
	if at, err := http.ParseTime(text); err == nil && at.After(now) {
		return at.Sub(now)
	}
	return 0
}
