package service

import (
	"sync/atomic"
	"time"

	"github.com/ropewalk/ropewalk/sandbox"
)

// overhead is the memory that a job uses in addition to its call's content.
const overhead = 512

// job is one call that the service has accepted.
type job struct {
	key      string
	digest   string // Call.Key, by which jobs with the same idempotency key are compared
	call     sandbox.Call
	arrived  time.Time
	expires  time.Time
	size     int64
	receiver *receiver
	quota    *quota       // of its client, when it was accepted
	place    atomic.Int32 // waiting, running or dropped
}

const (
	waiting int32 = iota
	running
	dropped
)

// take moves a job from waiting to another place, and reports whether this call did so.
func (j *job) take(place int32) bool { return j.place.CompareAndSwap(waiting, place) }

// answer is the result of a job.
type answer struct {
	key    string
	trace  string
	result sandbox.Result
	err    error // if not nil, result is not a verdict
}

// size is roughly an answer's size in memory.
func (a answer) size() int64 {
	r := a.result
	n := overhead + len(r.Stdout) + len(r.Stderr) + len(r.Traceback) + len(r.Value)
	for _, f := range r.Files {
		n += len(f.Name) + len(f.Content)
	}
	return int64(n)
}

// weigh returns roughly a call's size in memory.
func weigh(c sandbox.Call) int64 {
	n := overhead + len(c.Code) + len(c.Stdin)
	for _, f := range c.Files {
		n += len(f.Name) + len(f.Content)
	}
	return int64(n)
}
