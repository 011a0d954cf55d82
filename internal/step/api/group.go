package api

import "github.com/ropewalk/ropewalk/schema"

// Result is the result of a stage.
type Result interface {
	// Common returns the part that the results of all stages have in common.
	Common() *Done
}

// Sent is what the input of a group of stages carries for the runner of its stages.
type Sent struct {
	// Timeouts are time limits in seconds, by activity, where a person set others.
	Timeouts map[string]float64 `json:"timeouts,omitempty"`
}

// Carried returns what an input carries.
func (s *Sent) Carried() *Sent { return s }

// Sender is the input of a group of stages.
type Sender interface {
	// Carried returns what the input carries.
	Carried() *Sent
}

// Spent is what a group of stages has measured.
type Spent struct {
	// Timings are the measured times of its stages, in order; Busy replaces the ones that the group has recorded.
	Timings []Timing `json:"timings,omitempty"`
	Busy    Busy     `json:"busy,omitempty"`
}

// Measured returns what a group has measured.
func (s *Spent) Measured() *Spent { return s }

// Spender is the result of a group of stages.
type Spender interface {
	// Measured returns what the group has measured.
	Measured() *Spent
}

// Made lists manifests that a step has committed, in the order of its stages.
type Made []StageRef

// All returns the manifests of a stage: one for each turn of a stage that has turns.
func (m Made) All(stage string) (out []schema.Ref) {
	for _, made := range m {
		if made.Stage == stage {
			out = append(out, made.Ref)
		}
	}
	return out
}

// One returns the manifest of a stage; zero if there is none.
func (m Made) One(stage string) (out schema.Ref) {
	for _, made := range m {
		if made.Stage == stage {
			out = made.Ref
		}
	}
	return out
}
