package torch

import (
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/policy"
)

// lostReason says why an engine was lost.
type lostReason string

// The reasons for which an engine is lost.
const (
	lostDied     lostReason = "died"     // a rank, or torchrun, ended by itself or was killed
	lostHung     lostReason = "hung"     // a call made no progress for Options.HangLimit
	lostBroke    lostReason = "protocol" // it broke the protocol, or said that the host had
	lostStubborn lostReason = "stubborn" // a cancelled call did not end in Options.CancelLimit
	lostInternal lostReason = "internal" // it failed in a way for which the protocol has no kind
	lostClosed   lostReason = "closed"   // Close was called
)

// lostError is policy.ErrLost with details.
type lostError struct {
	Reason lostReason
	Detail string // what was observed, and how the process ended
	Call   string // the call that ran; "" when idle
	Stacks string // of all ranks' threads, if the engine hung and could write them
	Log    string // the engine's last lines
}

// maxStacksInNote is how many bytes of the stacks an error's text holds. The log has all of them.
const maxStacksInNote = 4 << 10

// Error describes how the engine was lost, with the beginning of the stacks.
func (e *lostError) Error() string {
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
func (e *lostError) Is(target error) bool { return target == policy.ErrLost }
