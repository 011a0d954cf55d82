// Package sandbox defines how to run code that a model wrote: calls, sessions, verdicts and failures. The packages
// below it implement this.
//
//   - A *call* is one program with its input, files and limits. It starts with nothing else.
//   - A *session* runs *cells* one after another in one interpreter, which keeps its variables.
//   - A *verdict* is the Result of a call or cell. Verdicts are data: a wrong program, a time-out or too much
//     output is a result with a Status.
//   - *Breakage* is an error and never a verdict: no interpreter, a zygote that was killed, a queue that is too long.
//   - A *tier* says how strongly calls are isolated. A *package set* says which libraries their interpreter has loaded.
//
// A batch of calls goes through an Executor; executors wrap each other:
//
//	RunEach ─▶ once ─▶ zygote (this machine)
//	               └─▶ client ─▶ service ─▶ zygote (other machines)
//
// Package zygote runs calls and sessions, session keeps a session for each trajectory, once runs identical calls of a
// batch only once, and symbolic compares written answers by calls.
package sandbox

import "context"

// Executor runs calls, several at once, and returns their results in the order of the calls.
//
// An error means breakage. If it contains CallErrors (errors.As), these say which calls have no verdict, and the
// results of the others are valid. After any other error no result of the batch is valid. A malformed call
// (Call.Validate) gets such a CallErrors entry with ErrBadCall. Safe for concurrent use.
//
// The caller that opened an executor closes it. Close ends every process that the executor started.
type Executor interface {
	// Run runs a batch of calls.
	Run(ctx context.Context, calls []Call) ([]Result, error)
	// Close ends running calls and every process of the executor.
	Close() error
}

// Sessions opens sessions. Safe for concurrent use.
type Sessions interface {
	// OpenSession starts an interpreter with a process, memory and work folder that no other session or call can see.
	// packages is as in Call. limits bound each cell; memory and processes bound the whole session.
	OpenSession(ctx context.Context, packages string, limits Limits) (Session, error)
}

// Session runs cells in one interpreter, one at a time. It ends by Close, by a cell that exits or is killed (time-out,
// memory, output), or by breakage. Later cells fail with ErrSessionLost.
type Session interface {
	// Run runs one cell, with its Stdin and Files. Its Language and Packages must be the session's.
	Run(ctx context.Context, cell Call) (Result, error)
	// Close ends the session and a cell that runs in it.
	Close() error
}
