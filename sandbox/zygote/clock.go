package zygote

import (
	"fmt"
	"time"

	"golang.org/x/sys/unix"
)

// cpuClock is the kernel's clock of the CPU time of one process, with all its threads, including those that have ended.
type cpuClock int32

// clockOf follows CPUCLOCK_SCHED of linux/posix-timers.h: the complement of the process id, and 2 in the low bits.
func clockOf(pid int) cpuClock { return cpuClock(^int32(pid)<<3 | 2) }

// read returns the CPU time used so far. It fails once the process has been reaped.
func (c cpuClock) read() (time.Duration, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(int32(c), &t); err != nil {
		return 0, fmt.Errorf("read CPU time: %w", err)
	}
	return time.Duration(t.Nano()), nil
}
