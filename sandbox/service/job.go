package service

import (
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// overhead is what a job weighs beside its call's bytes.
const overhead = 512

// job is one call that was taken in.
type job struct {
	key     string
	digest  string // Call.Key: what the idempotency key stands for
	call    sandbox.Call
	arrived time.Time
	expires time.Time
	size    int64
	lane    *lane
	place   atomic.Int32 // of waiting, running, dropped
}

const (
	waiting int32 = iota
	running
	dropped
)

// take moves a job from waiting to place and reports whether it was the one to do so.
func (j *job) take(place int32) bool { return j.place.CompareAndSwap(waiting, place) }

// answer is what became of a job.
type answer struct {
	key    string
	trace  string
	result sandbox.Result
	err    error // not nil: result is no verdict
}

// size is about what an answer weighs in memory.
func (a answer) size() int64 {
	r := a.result
	n := overhead + len(r.Stdout) + len(r.Stderr) + len(r.Traceback) + len(r.Value)
	for _, f := range r.Files {
		n += len(f.Name) + len(f.Content)
	}
	return int64(n)
}

// weigh is about what a call weighs in memory.
func weigh(c sandbox.Call) int64 {
	n := overhead + len(c.Code) + len(c.Stdin)
	for _, f := range c.Files {
		n += len(f.Name) + len(f.Content)
	}
	return int64(n)
}
