// Package session keeps one session for each trajectory, over any sandbox.Sessions.
//
// A *trajectory's session* is known by an id. Its interpreter may be there or not: it is made at the first cell, taken
// away when it has been idle for long or others need its place, and lost when its process or machine is. Then it is
// made anew by *replaying* the trajectory's cells: each must have the result that it had before, field by field, or
// the session is lost for good, with an error that names the cell. So a trajectory never goes on with other
// variables than those that it has seen the results of; what no result has shown may differ.
//
// A *notebook* is a trajectory whose cells, and what came of them, a record keeps (RunNotebook): the pool's interpreter
// is then but a cache of it. One that has run other cells than the record's, or ended otherwise, is not gone on with; one
// is made anew that runs the record's cells again and must end as it says. A cell that ends the interpreter leaves the
// next one a fresh one, whose result says so (Restarted).
//
// Elsewhere a session that ended by a verdict or an exit stays ended: ErrSessionEnded.
package session
