package bench

import (
	"syscall"
	"time"
)

// ProcessorTime is the processor time that all threads of this process have used so far. A busy machine stretches it
// less than the clock does.
func ProcessorTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
