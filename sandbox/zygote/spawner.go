package zygote

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// addrNoRandomize is ADDR_NO_RANDOMIZE of linux/personality.h.
const addrNoRandomize = 0x0040000

// spawner starts every zygote of an executor on one dedicated thread. The kernel kills a zygote when the thread that
// started it ends, so that thread must live as long as the executor. Also, the thread's personality turns address
// randomisation off, which must not affect other threads.
type spawner struct {
	work chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

// run does not unlock its thread, so the thread ends when run returns.
func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	const ask = 0xffffffff
	if now, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, ask, 0, 0); errno == 0 {
		// A container may forbid this. Addresses are then random, which the package documentation allows.
		_, _, _ = unix.RawSyscall(unix.SYS_PERSONALITY, now|addrNoRandomize, 0, 0)
	}
	for job := range s.work {
		job()
	}
}

// start runs plan.start on the spawner's thread.
func (s *spawner) start(p plan, folder string, set PackageSet) (z *process, err error) {
	ready := make(chan struct{})
	s.work <- func() {
		defer close(ready)
		z, err = p.start(folder, set)
	}
	<-ready
	return z, err
}

func (s *spawner) close() {
	close(s.work)
	<-s.done
}
