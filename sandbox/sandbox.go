// Package sandbox runs code that a model wrote. Its words:
//
//   - A *call* is one program with its input, files and limits; it starts with nothing but them.
//   - A *session* runs *cells* one after another in one interpreter, which keeps its variables.
//   - A *verdict* is what became of a call or cell, a Result. Verdicts are data: a wrong program, a
//     time-out or too much output are results with a Status.
//   - *Breakage* (no interpreter, a lost zygote, no room in the queue's time) is an error and never a verdict.
//   - A *tier* says how strongly calls are isolated; a *package set* which libraries their interpreter has loaded.
//
// Packages beneath: zygote runs calls, once runs identical ones one time, symbolic compares written answers by them.
package sandbox

import "context"

// Executor runs calls, several at once, and returns results in the order of calls.
// An error means breakage. Where it holds CallErrors (errors.As), these say which calls have no
// verdict, and the results of the others stand; after any other error no result of the batch may
// be used. A call that is malformed (Call.Validate) is such a single error, ErrBadCall. Safe for concurrent use.
// Whoever opened it closes it; Close ends every process it started.
type Executor interface {
	Run(ctx context.Context, calls []Call) ([]Result, error)
	Close() error
}

// Sessions makes sessions. Safe for concurrent use.
type Sessions interface {
	// OpenSession starts an interpreter of its own, in a process, memory and folder that no other
	// session or call can see. Packages are as in Call; limits bound each cell, memory and processes the whole session.
	OpenSession(ctx context.Context, packages string, limits Limits) (Session, error)
}

// Session runs cells in one interpreter, one at a time. It ends by Close, by a cell that exits the interpreter or
// is killed (time-out, memory, output), or by breakage; a cell after that fails with ErrSessionLost.
type Session interface {
	// Run runs one cell. Stdin and Files of the call are given to it; Language and Packages must be the session's.
	Run(ctx context.Context, cell Call) (Result, error)
	Close() error
}
