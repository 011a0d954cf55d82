package torch

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/policy"
)

// Reason says why an engine was lost.
type Reason string

// Reasons.
const (
	Died     Reason = "died"     // a rank, or torchrun, ended by itself or was killed
	Hung     Reason = "hung"     // a call stood still for Options.HangLimit
	Broke    Reason = "protocol" // it broke the protocol, or said that the host had
	Stubborn Reason = "stubborn" // a cancelled call did not end in Options.CancelLimit
	Internal Reason = "internal" // it failed in a way that the protocol has no name for
	Closed   Reason = "closed"   // Close was called
)

// LostError is policy.ErrLost with what is known of it.
type LostError struct {
	Reason Reason
	Detail string // what was seen, and how the process ended
	Call   string // that it was in; "" when idle
	Stacks string // of all ranks' threads, where it hung and could write them
	Log    string // the engine's last lines
}

// maxStacksInNote is how much of the stacks an error's text holds, in bytes; all of them are in the log.
const maxStacksInNote = 4 << 10

func (e *LostError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %s", policy.ErrLost, e.Detail)
	if e.Call != "" {
		fmt.Fprintf(&b, ", in a call of %s", e.Call)
	}
	if e.Stacks != "" {
		fmt.Fprintf(&b, "; stacks:\n%s", e.Stacks[:min(len(e.Stacks), maxStacksInNote)])
	} else if e.Log != "" {
		fmt.Fprintf(&b, "; it wrote last:\n%s", e.Log)
	}
	return b.String()
}

// Is makes it policy.ErrLost.
func (e *LostError) Is(target error) bool { return target == policy.ErrLost }
