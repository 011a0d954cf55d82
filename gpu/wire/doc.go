// Package wire is the codec of the engine protocol (gpu/PROTOCOL.md): frames, the typed messages in their headers, and
// their safetensors bodies. It only reads and writes; the caller decides when to send what.
//
// Glossary. A *frame* is one message on the socket: a *header*, one JSON object, and a *body*, a safetensors file
// or nothing. An *array* is one tensor of a body. *Ragged* rows follow each other in one flat array, and `lengths`
// says where each ends. The *host* is the side that trains, the *engine* the side that holds models.
//
// All input is bounded before it is stored and checked before it is used: a reader trusts no length, a header has
// exactly its message's fields, a body exactly its message's arrays. Every violation is ErrProtocol.
package wire

import (
	"errors"
	"fmt"
)

// Version is the protocol's.
const Version = 1

// ErrProtocol marks bytes that break the protocol. Their connection cannot be used any more.
var ErrProtocol = errors.New("engine protocol broken")

func broken(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrProtocol}, args...)...)
}
