// Package wire is the engine protocol's codec (gpu/PROTOCOL.md): frames, the typed messages in their headers and
// the safetensors bodies beside them. It reads and writes; who speaks when is the caller's.
//
// Glossary. A *frame* is one message on the socket: a *header*, one JSON object, and a *body*, a safetensors file
// or nothing. An *array* is one tensor of a body. *Ragged* rows lie behind each other in one flat array that
// `lengths` cuts. The *host* is the side that trains, the *engine* the side that holds models.
//
// Whatever comes in is bounded before it is stored and checked before it is used: a reader trusts no length, a
// header has exactly its message's fields, a body exactly its message's arrays. Every breach is ErrProtocol.
package wire

import (
	"errors"
	"fmt"
)

// Version is the protocol's.
const Version = 1

// ErrProtocol marks bytes that break the protocol; the connection that they came by is of no more use.
var ErrProtocol = errors.New("engine protocol broken")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}
