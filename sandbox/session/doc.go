// Package session keeps one session for each trajectory, on top of any sandbox.Sessions. Pool is its main type.
//
//	cell + id ─▶ Pool ─▶ the trajectory's interpreter ─▶ result
//	               │ no interpreter: open one, replay the cells that have run
//	               ▼
//	         sandbox.Sessions (zygote, or client for other machines)
//
// A *trajectory's session* has an id. Its interpreter is opened for the first cell. It is closed when it has been idle
// for too long or when others need its place, and it is lost when its process or machine fails. Then the pool restores
// it by *replaying* the trajectory's cells. Each cell must have the same result as before, field by field. Otherwise
// the session is lost for good, with an error that names the cell. So a trajectory never continues with variables
// other than those whose effects it has seen; state that no result has shown may differ.
//
// A *notebook* is a trajectory whose cells and results are kept in a record (RunNotebook). The pool's interpreter is
// then only a cache of the record. If the interpreter has run other cells than the record's, or has other results, the
// pool opens a new one, which runs the record's cells again and must get the recorded results. After a cell that ends
// the interpreter, the next cell runs in a fresh one, and its result says so (Restarted).
//
// Outside of notebooks a session that ended by a verdict or an exit stays ended: ErrSessionEnded.
package session
