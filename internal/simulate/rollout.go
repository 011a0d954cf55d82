package simulate

import (
	"errors"
	"fmt"

	"github.com/ropewalk/ropewalk/rl/scheduler"
)

// Turn is one turn of a rollout.
type Turn struct {
	Tokens int32   // that it generates, ≥ 1
	Result int32   // tokens of the tools' answer; 0 after the last turn
	Tool   float32 // seconds that the tool takes; for the last turn, those of the answer's verification
}

// Rollout is an episode with the lengths that it turns out to have.
type Rollout struct {
	Group  int
	Class  scheduler.Class
	Prompt int
	Most   int // tokens that it may come to hold
	Turns  []Turn
}

// held is how many tokens the rollout holds in the end.
func (r *Rollout) held() int {
	n := r.Prompt
	for _, t := range r.Turns {
		n += int(t.Tokens) + int(t.Result)
	}
	return n
}

// MeanHeld is the mean of the tokens that the job's rollouts hold in the end.
func (j *Job) MeanHeld() int {
	sum := 0
	for i := range j.Rollouts {
		sum += j.Rollouts[i].held()
	}
	return sum / max(len(j.Rollouts), 1)
}

// Failure is something that happens to an engine.
type Failure struct {
	At     float64 `yaml:"at"` // seconds
	Engine int     `yaml:"engine"`
	Event  string  `yaml:"event"`  // lost, joined, or slow
	Factor float64 `yaml:"factor"` // of slow: the speed is divided by it; 1 = as before
}

// The events of failures.
const (
	eventLost   = "lost"
	eventJoined = "joined"
	eventSlow   = "slow"
)

// Job is a drawn workload: all that a simulation needs.
type Job struct {
	Engines  []Model
	Rollouts []Rollout
	Tools    Service
	Failures []Failure // in the order of time
	Stretch  int       // tokens after which an engine can stop a turn; 0 = only at its end
	Need     int       // rollouts of a group that are enough; 0 = all
}

// Result is what a simulation has measured.
type Result struct {
	Makespan  float64 `json:"makespan_seconds"`
	Idle      float64 `json:"idle"`       // mean share of the makespan in which an engine does nothing
	Evictions int     `json:"evictions"`  // rows that an engine dropped because its cache was full
	Computed  int     `json:"recomputed"` // tokens of prefixes that were computed more than once
	Repeated  int     `json:"repeated"`   // tokens generated in turns that were given up
	Ended     int     `json:"ended"`      // rollouts
	Stopped   int     `json:"stopped"`    // rollouts that over-sampling did not need
	Calls     int     `json:"calls"`      // of tools and verification
	// Latency is the seconds from the dispatch of a call to its response, Late its 99th percentile.
	Latency float64 `json:"call_seconds"`
	Late    float64 `json:"call_seconds_p99"`
	// EndedTokens and StoppedTokens are the mean lengths of the rollouts that ended and of those that were stopped.
	EndedTokens   float64         `json:"ended_tokens"`
	StoppedTokens float64         `json:"stopped_tokens,omitempty"`
	Decisions     scheduler.Stats `json:"decisions"`
	usage         *usage
}

// Take replaces the job's rollouts, for example by those of a record. What a rollout may come to hold is the limit of
// the rollouts that it replaces, or what the longest one holds, whichever is greater.
func (j *Job) Take(rollouts []Rollout) error {
	if len(rollouts) == 0 {
		return errors.New("the step has no rollouts")
	}
	most, largest := 0, 0
	for i := range j.Rollouts {
		most = max(most, j.Rollouts[i].Most)
	}
	for i := range rollouts {
		most = max(most, rollouts[i].held())
	}
	for _, m := range j.Engines {
		largest = max(largest, m.Tokens)
	}
	if most > largest {
		return fmt.Errorf("a rollout may hold %d tokens, and the largest engine %d", most, largest)
	}
	for i := range rollouts {
		rollouts[i].Most = most
	}
	j.Rollouts = rollouts
	return nil
}
