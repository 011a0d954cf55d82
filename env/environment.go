package env

import (
	"context"
	"errors"
	"fmt"
)

// Split names one of the two disjoint parts of an environment's tasks.
type Split string

// The splits of an environment's tasks.
const (
	Train   Split = "train"
	HeldOut Split = "held-out"
)

// HeldOut reports whether the split is the held-out one. It is an error if it is neither.
func (s Split) HeldOut() (bool, error) {
	if s != Train && s != HeldOut {
		return false, fmt.Errorf("there is no split %q", s)
	}
	return s == HeldOut, nil
}

// Draw is a position in the order of a split's tasks.
type Draw struct {
	Split Split
	Seed  uint64 // seed of the run; the held-out split has the same order for all seeds
	// Step counts from 1; it is 0 outside the steps of a run (held-out tasks, demonstrations).
	Step int
	// Index counts the tasks of the step from 0. It may be larger than PerStep if other tasks were skipped.
	Index int
	// PerStep is the number of tasks that each step draws. Place uses it.
	PerStep int
}

// Place numbers the draws of a run from 0. It serves environments with a list of tasks that use every task once before
// they repeat any.
func (d Draw) Place() int { return max(0, d.Step-1)*d.PerStep + d.Index }

// Task is one instance of an environment's problem. It holds everything that Reset needs to begin an episode and that
// grading needs to know about a question. The record keeps ID, Level, Part, Text, Answer and Spec.
type Task struct {
	ID    string // digest of the content that defines the task; equal tasks have equal ids in every split and run
	Level int    // difficulty, from 1; each environment defines its meaning
	Type  string // family of the task; "" if the environment has one family
	Part  string // label of the part of a mix that the task comes from; "" elsewhere
	// Text is the question to the policy. For an interactive task it is the text of the first observation, once an
	// episode has begun.
	Text   string
	Answer string // gold answer of a question
	// Spec is the task in the environment's own canonical form. Only the environment reads it (calc: a Python
	// expression; sokoban: the room as JSON).
	Spec string
}

// State is an episode's state in the environment's own canonical encoding. Equal states have equal bytes, so a state
// can be stored, compared, forked (copied) and used as an anchor state. A state has a few kilobytes at most.
type State []byte

// PartKind is the kind of a part of an observation.
type PartKind string

// PartText is readable text. A sampler that supports only text names any other kind when it rejects it.
const PartText PartKind = "text"

// Part is one typed piece of an observation.
type Part struct {
	Kind PartKind
	Text string // content of a text part
}

// Observation is what the policy sees before it acts.
type Observation struct {
	Parts []Part
	// Admissible lists the actions that the environment accepts in this state, in a fixed order. It is nil if the
	// environment cannot list them, and empty if the episode has ended.
	Admissible []string
}

// Seen returns an observation of one text, with the actions that are accepted then (none: they are not listed).
func Seen(text string, admissible ...string) Observation {
	return Observation{Parts: []Part{{Kind: PartText, Text: text}}, Admissible: admissible}
}

// Text joins an observation's text parts, each on separate lines. It returns false if the observation has another kind
// of part.
func (o Observation) Text() (string, bool) {
	var text string
	for i, p := range o.Parts {
		if p.Kind != PartText {
			return "", false
		}
		if i > 0 {
			text += "\n"
		}
		text += p.Text
	}
	return text, true
}

// Transition is the result of one action.
type Transition struct {
	Observation Observation
	Reward      float64 // reward of this turn
	Done        bool    // the episode has ended
	Success     bool    // the episode has ended at the task's goal; never true if Done is false
	// Valid is false for an action that the environment could not parse or does not know. Such an action uses a turn
	// like any other: it has a reward and an observation, and may end the episode.
	Valid bool
}

// ErrEnded is the error of Step for a state whose episode has ended.
var ErrEnded = errors.New("the episode has ended")

// Environment supplies tasks and runs episodes of them.
//
// Task is lazy and has random access: it computes only the requested task, so a stage can draw the tasks of any step
// without drawing those of earlier steps. The same draw gives the same task on every machine. Tasks may repeat. No task
// is in both splits. The held-out split does not depend on the seed, so all runs evaluate on the same tasks.
//
// An episode is a pure state machine. Reset and Step depend only on their arguments: the same task and actions give the
// same states, observations and rewards on every machine and in every process. They change neither the given state nor
// anything else. So a caller may keep a state, step it twice, or continue from a copy. A question is the simple case:
// its first observation is its text, its only action is the answer, and the answer ends the episode.
//
// A policy's mistake is a verdict: Step returns Valid = false for an action that it cannot parse. No action of a policy
// makes Step return an error. An error means a failure (a state of another environment, ErrEnded, a context that has
// ended) and never becomes a reward.
//
// All methods are safe for concurrent use. An Environment needs no closing. If an environment holds a process or a
// connection, its constructor says so and returns a closer.
type Environment interface {
	// Name returns the environment's name in recipes.
	Name() string
	// Task returns the task of a draw.
	Task(ctx context.Context, at Draw) (Task, error)
	// Instruction describes the task and the available actions to a policy. It is the same at every turn. It is "" if
	// the task's own text says everything.
	Instruction(task Task) (string, error)
	// Reset begins an episode of a task.
	Reset(ctx context.Context, task Task) (State, Observation, error)
	// Step applies the text of one action.
	Step(ctx context.Context, state State, action string) (State, Transition, error)
	// Situation identifies the position of an episode, regardless of how the episode reached it. Two states have equal
	// situations if the same actions lead from them to the same observations and rewards, apart from the limit on
	// turns. It is the anchor state of GiGPO (002 eq. S16).
	Situation(state State) (string, error)
}

// Scorer is an environment that grades how far an episode came. The score is a metric: nothing is trained on it.
type Scorer interface {
	// Score returns the score of an episode in a state, from 0 to 1. It is 0 before anything was achieved, and nil if
	// the environment does not grade the episode.
	Score(state State) (*float64, error)
}

// Classifier is an environment that learns a task's level and type when an episode of it begins.
type Classifier interface {
	// Classify returns the task with the level and type that the episode in the state has.
	Classify(task Task, state State) (Task, error)
}

// Coded is an environment whose episodes run the user's own code.
type Coded interface {
	// Code loads the code unless it is loaded. It returns a line with the SHA-256 and the name of each of its files
	// that was imported so far, as sha256sum prints them; "" if there is none.
	Code(ctx context.Context) (string, error)
}

// Tried is an environment whose episodes run elsewhere: on the user's own code, or on a server.
type Tried interface {
	// Try begins an episode and ends it. The error says what the other side refuses.
	Try(ctx context.Context) error
}

// Lister is an environment that can list its tasks, because files hold them.
type Lister interface {
	// Tasks returns the tasks of a split in the order of the files.
	Tasks(ctx context.Context, split Split) ([]Task, error)
	// TasksAt reads the tasks of another file of the same form at an absolute path, within the same limits. The digest
	// is that of the file.
	TasksAt(ctx context.Context, path string) (tasks []Task, digest string, err error)
}

// ErrUnsolved is the error of an Expert that found no solution within its search bound.
var ErrUnsolved = errors.New("no solution was found within the expert's bound")

// Expert is an environment that can solve its own tasks.
type Expert interface {
	// Solve returns the next actions on a way from the given state to the episode's end with success, at least one, or
	// ErrUnsolved. If the episode goes on after them, the caller asks again. It returns the same actions for the same
	// state.
	Solve(ctx context.Context, state State) ([]string, error)
}

// Misleader is an Expert whose environment lists no admissible actions, so that a noisy demonstration needs an action
// that is most likely wrong.
type Misleader interface {
	// Mislead returns an action of the form that right ones have. Equal states and draws give the same action.
	Mislead(ctx context.Context, state State, draw uint64) (string, error)
}
