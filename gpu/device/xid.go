package device

import (
	"fmt"
	"sort"
)

// consequence is what follows from a Xid for the device that reported it.
type consequence string

// Consequences, from none to the worst.
const (
	// ignore: the report does not count as a fault of the device.
	ignore consequence = "ignore"
	// application: the program's own doing, or an error that ends the program alone. The program's engine fails by
	// itself; the device stays as it is.
	application consequence = "application"
	// degrade: the device's holder continues; the device is not leased again.
	degrade consequence = "degraded"
	// fail: the device needs a reset, or more. Its holder must stop.
	fail consequence = "failed"
)

// Xid is a row of the table: codes First to Last of one kind.
type Xid struct {
	First, Last int
	Name        string
	// Action is the immediate action that NVIDIA's catalogue names; "-" where it names none.
	Action      string
	Consequence consequence
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
	i := sort.Search(len(xidTable), func(i int) bool { return xidTable[i].Last >= code })
	if i < len(xidTable) && xidTable[i].First <= code {
		return xidTable[i]
	}
	return Xid{First: code, Last: code, Name: "not in the catalogue", Action: "-", Consequence: degrade}
}

// xidKind is the failure kind of a Xid.
func xidKind(code int) Kind { return Kind(fmt.Sprintf("gpu_xid_%d", code)) }
