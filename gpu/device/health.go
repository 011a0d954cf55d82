package device

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// State says what a device may be used for.
type State string

// States, from the best to the worst.
const (
	Healthy  State = "healthy"
	Degraded State = "degraded"
	Failed   State = "failed"
)

// States lists all states.
var States = []State{Healthy, Degraded, Failed}

// Kind names a reason. If the reason fails a device, it is also the failure kind of the work that ran there.
type Kind string

// Kinds of reasons that are no Xids.
const (
	KindLost           Kind = "gpu_lost"            // it has fallen off the bus or is no longer listed
	KindHung           Kind = "gpu_hung"            // the driver does not answer for it
	KindUnreadable     Kind = "gpu_unreadable"      // several polls one after the other could not read it
	KindResetRequired  Kind = "gpu_reset_required"  // the driver's recovery action
	KindRebootRequired Kind = "gpu_reboot_required" // the driver's recovery action
	KindDrain          Kind = "gpu_drain"           // the driver's recovery action: no peer-to-peer traffic any more
	// failed by an event; degraded by errors counted since the driver was loaded
	KindDoubleBit       Kind = "gpu_ecc_double_bit"
	KindRemapPending    Kind = "gpu_row_remap_pending" // a row or page is replaced at the next reset
	KindRemapFailed     Kind = "gpu_row_remap_failed"
	KindThrottleThermal Kind = "gpu_throttled_thermal" // for a large share of the window
	KindThrottlePower   Kind = "gpu_throttled_power"   // likewise, by a power brake
	KindLinkDown        Kind = "gpu_nvlink_down"       // a link that was up is down
)

// Reason is one fault of a device.
type Reason struct {
	Kind   Kind   `json:"kind"`
	State  State  `json:"state"` // degraded or failed
	Detail string `json:"detail"`
}

// String returns the reason as KIND: DETAIL.
func (r Reason) String() string { return fmt.Sprintf("%s: %s", r.Kind, r.Detail) }

// Health is a device's state and the reasons for it.
type Health struct {
	State   State    `json:"state"`
	Reasons []Reason `json:"reasons,omitempty"` // worst first, then by kind
}

// healthOf puts reasons into order and takes the worst.
func healthOf(reasons []Reason) Health {
	if len(reasons) == 0 {
		return Health{State: Healthy}
	}
	reasons = slices.Clone(reasons)
	slices.SortFunc(reasons, func(a, b Reason) int {
		return cmp.Or(
			slices.Index(States, b.State)-slices.Index(States, a.State),
			strings.Compare(string(a.Kind), string(b.Kind)),
		)
	})
	return Health{State: reasons[0].State, Reasons: reasons}
}

// String returns the state, followed by the reasons if there are any.
func (h Health) String() string {
	if len(h.Reasons) == 0 {
		return string(h.State)
	}
	var details []string
	for _, r := range h.Reasons {
		details = append(details, r.String())
	}
	return fmt.Sprintf("%s (%s)", h.State, strings.Join(details, "; "))
}

// Error is the error of work on a device that has failed.
type Error struct {
	Index  int
	UUID   string
	Reason Reason
}

// Error names the device and the reason of its failure.
func (e *Error) Error() string {
	return fmt.Sprintf("device %d (%s) has failed: %s", e.Index, e.UUID, e.Reason)
}

// FailureKind is the kind under which the work's failure is recorded, e.g. gpu_xid_79.
func (e *Error) FailureKind() string { return string(e.Reason.Kind) }
