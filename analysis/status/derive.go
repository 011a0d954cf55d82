package status

import "github.com/ropewalk/ropewalk/schema"

// Server says what a reader has learnt from a Temporal server.
type Server string

// What a reader has learnt.
const (
	Unasked Server = ""        // the reader asks no server
	Stopped Server = "stopped" // the server of this record does not run, so no workflow of it does
	Asked   Server = "asked"   // the server has answered
)

// Ended is how a closed workflow has ended.
type Ended string

// How a workflow has ended.
const (
	StillOpen       Ended = ""
	EndedCompleted  Ended = "completed"
	EndedFailed     Ended = "failed" // it failed, or ran out of time
	EndedCancelled  Ended = "cancelled"
	EndedTerminated Ended = "terminated"
)

// Workflow is the latest workflow under a run's name.
type Workflow struct {
	Ended  Ended  `json:"ended,omitempty"`
	Kind   string `json:"kind,omitempty"`   // of the failure that it waits or has ended with
	Paused bool   `json:"paused,omitempty"` // it waits between two steps
	Stage  string `json:"stage,omitempty"`
}

// Facts are what is known about a run.
type Facts struct {
	// Queued: the run was requested, and its recipe is not committed.
	Queued bool `json:"queued,omitempty"`
	// Asked is the number of steps that the recipe asked for at first; Planned the number after the latest change. Both
	// are 0 where nothing is trained.
	Asked   int `json:"asked,omitempty"`
	Planned int `json:"planned,omitempty"`
	// Finished: the evaluation after the last planned step is committed; for an import, its head.
	Finished bool              `json:"finished,omitempty"`
	Server   Server            `json:"server,omitempty"`
	Workflow *Workflow         `json:"workflow,omitempty"` // nil if the server knows none, or none was asked
	Note     *schema.StateNote `json:"note,omitempty"`     // the latest; nil if there is none
}

// Of derives a run's status.
func Of(f Facts) Status {
	if w := f.Workflow; w != nil && w.Ended == StillOpen {
		return ofOpen(f, *w)
	}
	switch {
	case f.Finished && f.noted(Parked) && f.Workflow == nil:
		return f.asNoted() // what comes after the last evaluation has failed
	case f.Finished:
		return f.finished()
	case f.Queued:
		return Status{State: Queued}
	case f.Workflow != nil:
		return ofClosed(f, *f.Workflow)
	case f.Note == nil && f.Server == Unasked:
		return Status{State: Open}
	case f.Note == nil:
		return Status{State: Interrupted}
	case f.Server == Unasked:
		return f.asNoted()
	case f.noted(Running), f.Server == Asked && (f.noted(Paused) || f.noted(Parked)):
		return Status{State: Interrupted}
	}
	return f.asNoted()
}

// ofOpen is the status of a run whose workflow is open. A finished run's workflow may still tidy up.
func ofOpen(f Facts, w Workflow) Status {
	switch {
	case w.Kind != "":
		s := Status{State: Parked, Kind: w.Kind}
		if f.noted(Parked) && f.Note.Kind == w.Kind {
			s.Reason = f.Note.Reason
		}
		return s
	case f.Finished:
		return f.finished()
	case w.Paused:
		return Status{State: Paused}
	}
	return Status{State: Running}
}

// ofClosed is the status of an unfinished run whose workflow is closed. Who ended a workflow from outside, and why, is
// in the note.
func ofClosed(f Facts, w Workflow) Status {
	switch {
	case w.Ended == EndedFailed:
		s := Status{State: Failed, Kind: w.Kind}
		if f.noted(Failed) {
			s = f.asNoted()
		}
		return s
	case f.noted(Cancelled), f.noted(Interrupted):
		return f.asNoted()
	case w.Ended == EndedCompleted:
		return Status{State: Interrupted, Reason: "its workflow has completed, and its last evaluation is not in the " +
			"record"}
	case w.Ended == EndedCancelled:
		return Status{State: Cancelled}
	}
	return Status{State: Interrupted, Reason: "its workflow was terminated"}
}

func (f Facts) finished() Status {
	if f.Planned < f.Asked {
		return Status{State: StoppedEarly}
	}
	return Status{State: Done}
}

func (f Facts) noted(s State) bool { return f.Note != nil && f.Note.State == string(s) }

func (f Facts) asNoted() Status {
	return Status{State: State(f.Note.State), Kind: f.Note.Kind, Reason: f.Note.Reason}
}
