package cpu

import (
	"errors"
	"sync/atomic"

	"github.com/ropewalk/ropewalk/internal/rescue"
)

// team runs small jobs one after the other on the same goroutines. The jobs of a decoding step are microseconds apart,
// and waking a goroutine takes longer than that, so a helper polls for the next job before it sleeps.
type team struct {
	parts   int
	patient bool // whether there is a processor for every part, so that looking out takes none away
	job     func(part int) error
	issued  atomic.Uint64 // jobs so far; the last one is the end
	left    atomic.Int64  // helpers that still work on the job
	ended   bool
	errs    []error
	helpers []helper
	done    chan struct{} // woken where run sleeps
	asleep  atomic.Bool   // run sleeps
}

type helper struct {
	asleep atomic.Bool
	wake   chan struct{}
}

// lookouts is how often a helper polls before it sleeps, for about 20 µs.
const lookouts = 10_000

func newTeam(parts int) *team {
	t := &team{
		parts: parts, patient: parts <= processors, errs: make([]error, parts),
		helpers: make([]helper, parts), done: make(chan struct{}, 1),
	}
	for i := 1; i < parts; i++ {
		t.helpers[i].wake = make(chan struct{}, 1)
		go t.help(i)
	}
	return t
}

// run calls job for every part concurrently, part 0 on the caller's goroutine, and returns the error of the first part
// that has one. If a part panics, run panics.
func (t *team) run(job func(part int) error) error {
	t.job = job
	t.startJob()
	t.errs[0] = rescue.Do(func() error { return job(0) })
	t.await(&t.asleep, t.done, func() bool { return t.left.Load() == 0 })
	for _, err := range t.errs {
		if p := (*rescue.Panic)(nil); errors.As(err, &p) {
			panic(p)
		}
	}
	for _, err := range t.errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// stop ends the helpers.
func (t *team) stop() {
	t.ended = true
	t.startJob()
	t.await(&t.asleep, t.done, func() bool { return t.left.Load() == 0 })
}

func (t *team) startJob() {
	t.left.Store(int64(t.parts - 1))
	t.issued.Add(1)
	for i := 1; i < t.parts; i++ {
		wakeUp(&t.helpers[i].asleep, t.helpers[i].wake)
	}
}

func (t *team) help(part int) {
	h := &t.helpers[part]
	for seen := uint64(0); ; seen++ {
		t.await(&h.asleep, h.wake, func() bool { return t.issued.Load() > seen })
		ended := t.ended
		if !ended {
			t.errs[part] = rescue.Do(func() error { return t.job(part) })
		}
		if t.left.Add(-1) == 0 {
			wakeUp(&t.asleep, t.done)
		}
		if ended {
			return
		}
	}
}

// await returns when ready is true. It polls for a while and then sleeps until it is woken. The part that makes ready
// true wakes it afterwards. A token left over from an earlier wait only causes one more poll.
func (t *team) await(asleep *atomic.Bool, wake chan struct{}, ready func() bool) {
	for range lookouts {
		if ready() {
			return
		}
		if !t.patient {
			break
		}
	}
	for {
		asleep.Store(true)
		if ready() {
			asleep.Store(false)
			return
		}
		<-wake
	}
}

func wakeUp(asleep *atomic.Bool, wake chan struct{}) {
	if asleep.Swap(false) {
		select {
		case wake <- struct{}{}:
		default:
		}
	}
}
