package zygote

import (
	"runtime"

	"golang.org/x/sys/unix"
)

// addrNoRandomize is ADDR_NO_RANDOMIZE of linux/personality.h.
const addrNoRandomize = 0x0040000

// spawner starts every zygote of an executor on one thread of its own. The kernel ends a
// zygote when the thread that made it ends, so that thread must live as long as the executor;
// and its personality, which turns address randomisation off, must not spread to others.
type spawner struct {
	work chan func()
	done chan struct{}
}

func newSpawner() *spawner {
	s := &spawner{work: make(chan func()), done: make(chan struct{})}
	go s.run()
	return s
}

// run never unlocks its thread, so the thread ends with it.
func (s *spawner) run() {
	defer close(s.done)
	runtime.LockOSThread()
	const ask = 0xffffffff
	if now, _, errno := unix.RawSyscall(unix.SYS_PERSONALITY, ask, 0, 0); errno == 0 {
		// Containers may forbid it; addresses are then random, which the package doc allows.
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
