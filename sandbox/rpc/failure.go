package rpc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox"
)

// The kinds of failure. HTTP uses the same ones.
const (
	KindBadCall        = "bad_call"       // the call is malformed; sending it again does not help
	KindKeyConflict    = "key_conflict"   // the idempotency key belongs to another call
	KindQueueTimeout   = "queue_timeout"  // the call waited too long and did not run
	KindInfrastructure = "infrastructure" // the sandbox broke
	KindDraining       = "draining"       // the node takes no more calls; this one did not run
	KindOverQuota      = "over_quota"     // the client has as much in the node as it may; later it may have more
	KindSessionLost    = "session_lost"   // the session is gone; replaying its cells may restore it
	KindSessionEnded   = "session_ended"  // the session ended itself
)

// ErrDraining means that the node takes no more calls. Another node may, or this one later.
var ErrDraining = errors.New("sandbox service is shutting down")

// ErrOverQuota means that the client has as much in the node as it may.
var ErrOverQuota = fmt.Errorf("%w: over quota", sandbox.ErrInfrastructure)

// ErrKeyConflict means that an idempotency key was used for two different calls.
var ErrKeyConflict = fmt.Errorf("%w: key belongs to another call", sandbox.ErrBadCall)

// FromError converts an error, which is never a verdict, to a message.
func FromError(err error) *Failure {
	f := &Failure{Kind: KindInfrastructure, Message: strings.ToValidUTF8(err.Error(), "\uFFFD")}
	switch {
	case errors.Is(err, ErrKeyConflict):
		f.Kind, f.Field = KindKeyConflict, "key"
	case errors.Is(err, sandbox.ErrBadCall):
		f.Kind, f.Field = KindBadCall, sandbox.BadField(err)
	case errors.Is(err, sandbox.ErrQueueTimeout):
		f.Kind = KindQueueTimeout
	case errors.Is(err, ErrDraining):
		f.Kind = KindDraining
	case errors.Is(err, ErrOverQuota):
		f.Kind = KindOverQuota
	case errors.Is(err, sandbox.ErrSessionEnded):
		f.Kind = KindSessionEnded
	case errors.Is(err, sandbox.ErrSessionLost):
		f.Kind = KindSessionLost
	}
	return f
}

// Err converts a failure to an error with package sandbox's sentinels.
func (x *Failure) Err() error {
	sentinel := sandbox.ErrInfrastructure
	switch x.GetKind() {
	case KindBadCall:
		sentinel = sandbox.ErrBadCall
	case KindKeyConflict:
		sentinel = ErrKeyConflict
	case KindQueueTimeout:
		sentinel = sandbox.ErrQueueTimeout
	case KindDraining:
		sentinel = ErrDraining
	case KindOverQuota:
		sentinel = ErrOverQuota
	case KindSessionLost:
		sentinel = sandbox.ErrSessionLost
	case KindSessionEnded:
		sentinel = sandbox.ErrSessionEnded
	}
	return remote{sentinel, x.GetMessage()}
}

// remote is an error that happened at the server. It has the server's text and this package's sentinel.
type remote struct {
	sentinel error
	words    string
}

// Error returns the server's text, or the sentinel's if there is none.
func (r remote) Error() string {
	if r.words == "" {
		return r.sentinel.Error()
	}
	return r.words
}

// Unwrap returns the sentinel.
func (r remote) Unwrap() error { return r.sentinel }
