package lease

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoDevice says that a request cannot be met. NoDeviceError says why.
var ErrNoDevice = errors.New("not enough devices")

// Request describes the devices of a lease.
type Request struct {
	// Devices is the number of devices, at least 1.
	Devices int
	// Memory is the number of bytes that must be free on each device; 0 means no requirement.
	Memory int64
	// Only, if not empty, lists the UUIDs to choose from.
	Only []string
}

// Lack says why a request cannot have a device.
type Lack struct {
	Index int
	UUID  string
	// Reason is "" for a device that is available; there were not enough of them.
	Reason string
	// Passing means that the reason may disappear by itself: the device is leased, or its memory is in use.
	Passing bool
}

// NoDeviceError is an ErrNoDevice with the reason for each device.
type NoDeviceError struct {
	Request Request
	Lacks   []Lack // by index
}

// Is reports whether target is ErrNoDevice.
func (e *NoDeviceError) Is(target error) bool { return target == ErrNoDevice }

// Error describes the request and why each device does not fit it.
func (e *NoDeviceError) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%v: %d wanted", ErrNoDevice, e.Request.Devices)
	if e.Request.Memory > 0 {
		fmt.Fprintf(&b, " with %s free each", gib(e.Request.Memory))
	}
	if len(e.Lacks) == 0 {
		b.WriteString("; this host has none")
	}
	for _, l := range e.Lacks {
		reason := l.Reason
		if reason == "" {
			reason = "can be had"
		}
		fmt.Fprintf(&b, "; device %d: %s", l.Index, reason)
	}
	return b.String()
}

// usable counts the devices that are available or may become available.
func (e *NoDeviceError) usable() int {
	n := 0
	for _, l := range e.Lacks {
		if l.Reason == "" || l.Passing {
			n++
		}
	}
	return n
}

func gib(bytes int64) string { return fmt.Sprintf("%.1f GiB", float64(bytes)/(1<<30)) }
