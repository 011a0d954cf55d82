package status

import "github.com/ropewalk/ropewalk/schema"

// State is where a run is.
type State string

// The states of a run.
const (
	// Queued: the run was requested and has committed nothing.
	Queued State = "queued"
	// Running: a workflow takes the run further as long as a worker serves it.
	Running State = schema.StateRunning
	// Paused: a person paused the run between two steps.
	Paused State = schema.StatePaused
	// Parked: a stage failed after all its retries, and the run waits for a person's decision.
	Parked State = schema.StateParked
	// Interrupted: nothing takes the run further. Its command or its servers have ended.
	Interrupted State = schema.StateInterrupted
	// StoppedEarly: the run is finished, after fewer steps than its recipe asked for at first.
	StoppedEarly State = schema.StateStoppedEarly
	// Cancelled: a person ended the run.
	Cancelled State = schema.StateCancelled
	// Failed: the run's workflow failed.
	Failed State = schema.StateFailed
	// Done: the last evaluation is committed; for an import, its head.
	Done State = schema.StateDone
	// Open: the run is not finished, and a reader that asks no server and finds no note knows no more.
	Open State = "open"
)

// String returns the state as people read it.
func (s State) String() string {
	if s == StoppedEarly {
		return "stopped early"
	}
	return string(s)
}

// Finished reports whether the run has a result, and takes no further step.
func (s State) Finished() bool { return s == Done || s == StoppedEarly }

// Status is a run's state and, where something failed or ended it, what did.
type Status struct {
	State  State
	Kind   string // of the failure of a parked or failed run
	Reason string // what failed, or who ended the run; one line or several
}

// String returns the state with the kind of its failure.
func (s Status) String() string {
	if s.Kind == "" {
		return s.State.String()
	}
	return s.State.String() + " (" + s.Kind + ")"
}

// Next returns the command that takes the run further, or "" where there is none.
func (s Status) Next(run string) string {
	switch s.State {
	case Queued, Interrupted, Cancelled, Failed, Open:
		return "ropewalk resume " + run
	case Paused:
		return "ropewalk unpause " + run
	case Parked:
		return "ropewalk unpark " + run + " --retry"
	case Running:
		return "ropewalk follow " + run
	}
	return ""
}
