package env

import (
	"context"
	"math/rand/v2"
)

// Move is one response of a script: a tool call, an action, or the final answer. A protocol renders it as a policy
// would write it (protocol.Protocol.Write).
type Move struct {
	Thought string // thought before the move, in the protocol's tags; "" = none
	Code    string // the program of a call of the Python tool
	// Tool and Arguments are a call of another tool: its name and the JSON object of its arguments.
	Tool, Arguments string
	Broken          bool   // the call is cut short, so that it does not decode
	Action          string // action in an interactive environment
	Answer          string // the final answer, if there is neither code nor action
}

// Shown is the result of a move.
type Shown struct {
	OK   bool   // the call succeeded
	Text string // what it printed, or the value that it showed
}

// Noise holds the probabilities of a scripted teacher's faults. The remaining demonstrations are correct.
type Noise struct {
	BadCode      float64 // code that does not parse or raises, or a call that does not decode
	WrongOrder   float64 // operators in the wrong order, or a wrong operator
	MissingPrint float64 // the value is computed and not shown
	NoTool       float64 // a guess, without calling the tool
	WrongCopy    float64 // the answer differs from the tool's result
}

// Lesson describes what a teacher demonstrates.
type Lesson struct {
	Levels []int // levels of the tasks, each equally likely
	Noise  Noise
	// Faulty is the share of demonstrations with a fault, of teachers that have one number for all faults.
	Faulty float64
	Tools  []string // names of the tools that the demonstrated policy can call
}

// Teacher is an environment whose questions a script can solve, with faults. An interactive environment does not need a
// Teacher: its Expert is the teacher.
type Teacher interface {
	// Draw returns the task of a demonstration. The task is never held out.
	Draw(rng *rand.Rand, l Lesson) (Task, error)
	// Demonstrate works on a task. act appends one move to the episode and returns its result. After the end of the
	// episode, act does nothing and shows nothing.
	Demonstrate(ctx context.Context, rng *rand.Rand, task Task, l Lesson, act func(Move) (Shown, error)) error
}

// Interpreter is a Teacher that knows what some programs of its demonstrations print, so that they need not run.
type Interpreter interface {
	// Interpret returns what Python prints, and the value that a notebook shows, for a program that it knows.
	Interpret(code string) (stdout, value string, known bool)
}

// IsCall reports whether the move calls a tool.
func (m Move) IsCall() bool { return m.Code != "" || m.Tool != "" }
