package lease

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNoDevice says that a request cannot be met; NoDeviceError says why.
var ErrNoDevice = errors.New("not enough devices")

// Request is what a lease shall hold.
type Request struct {
	// Devices is how many, at least 1.
	Devices int
	// Memory is how many bytes must be free on each; 0 asks for none.
	Memory int64
	// Only, if not empty, are the UUIDs among which to choose.
	Only []string
}

// Lack is what keeps a device from a request.
type Lack struct {
	Index int
	UUID  string
	// Reason is "" of a device that could be had, had there been enough.
	Reason string
	// Passing is true of what may pass by itself: the device is leased, or its memory is in use.
	Passing bool
}

// NoDeviceError is an ErrNoDevice.
type NoDeviceError struct {
	Request Request
	Lacks   []Lack // by index
}

// Is makes it an ErrNoDevice.
func (e *NoDeviceError) Is(target error) bool { return target == ErrNoDevice }

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

// usable counts the devices that can be had or may come to be.
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
