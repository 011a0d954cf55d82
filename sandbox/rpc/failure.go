package rpc

import (
	"errors"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/sandbox"
)

// The kinds of failure. They are the same over HTTP.
const (
	KindBadCall        = "bad_call"       // the call is malformed; sending it again cannot help
	KindKeyConflict    = "key_conflict"   // the idempotency key belongs to another call
	KindQueueTimeout   = "queue_timeout"  // it waited too long and did not run
	KindInfrastructure = "infrastructure" // the sandbox broke
	KindDraining       = "draining"       // the node takes no more; it did not run
	KindSessionLost    = "session_lost"   // the session is gone; running its cells again may make it anew
	KindSessionEnded   = "session_ended"  // the session has ended by its own doing
)

// ErrDraining: the node takes no more calls; another one, or this one later, may.
var ErrDraining = errors.New("sandbox service is shutting down")

// ErrKeyConflict: an idempotency key was used for two calls.
var ErrKeyConflict = fmt.Errorf("%w: key belongs to another call", sandbox.ErrBadCall)

// FromError puts what is no verdict on the wire.
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
	case errors.Is(err, sandbox.ErrSessionEnded):
		f.Kind = KindSessionEnded
	case errors.Is(err, sandbox.ErrSessionLost):
		f.Kind = KindSessionLost
	}
	return f
}

// Err reads a failure from the wire, with package sandbox's sentinels.
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
	case KindSessionLost:
		sentinel = sandbox.ErrSessionLost
	case KindSessionEnded:
		sentinel = sandbox.ErrSessionEnded
	}
	return remote{sentinel, x.GetMessage()}
}

// remote is an error that happened at the server: its words are the server's, its kind is ours.
type remote struct {
	sentinel error
	words    string
}

func (r remote) Error() string {
	if r.words == "" {
		return r.sentinel.Error()
	}
	return r.words
}

func (r remote) Unwrap() error { return r.sentinel }
