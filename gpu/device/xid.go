package device

import (
	"fmt"
	"sort"
)

// Consequence is what follows from a Xid for the device that reported it.
type Consequence string

// Consequences, from none to the worst.
const (
	// Ignore: the report does not count as a fault of the device.
	Ignore Consequence = "ignore"
	// Application: the program's own doing, or an error that ends the program alone. The program's engine fails by
	// itself; the device stays as it is.
	Application Consequence = "application"
	// Degrade: the device's holder continues; the device is not leased again.
	Degrade Consequence = "degraded"
	// Fail: the device needs a reset, or more. Its holder must stop.
	Fail Consequence = "failed"
)

// Xid is a row of the table: codes First to Last of one kind.
type Xid struct {
	First, Last int
	Name        string
	// Action is the immediate action that NVIDIA's catalogue names; "-" where it names none.
	Action      string
	Consequence Consequence
}

// Codes writes the row's codes.
func (x Xid) Codes() string {
	if x.First == x.Last {
		return fmt.Sprint(x.First)
	}
	return fmt.Sprintf("%d–%d", x.First, x.Last)
}

// XidOf returns the row of a code. A code that the table lacks degrades the device, so that an operator looks at it.
func XidOf(code int) Xid {
	i := sort.Search(len(Xids), func(i int) bool { return Xids[i].Last >= code })
	if i < len(Xids) && Xids[i].First <= code {
		return Xids[i]
	}
	return Xid{First: code, Last: code, Name: "not in the catalogue", Action: "-", Consequence: Degrade}
}

// XidKind is the failure kind of a Xid.
func XidKind(code int) Kind { return Kind(fmt.Sprintf("gpu_xid_%d", code)) }
