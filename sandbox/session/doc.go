// Package session keeps one interpreter for each trajectory, on top of any sandbox.Sessions. Pool is its main type.
//
//	notebook ─▶ Pool ─▶ the trajectory's interpreter ─▶ results
//	              │ no interpreter, or one that has run anything else: open one, replay the cells that have run
//	              ▼
//	         sandbox.Sessions (zygote, or client for other machines)
//
// A *notebook* is a trajectory whose cells and results are kept in a record. The pool's interpreter is only a cache of
// the record. It is closed when it has been idle for too long or when others need its place, and it is lost when its
// process or machine fails. A new interpreter then *replays* the cells that have run. Each must have the recorded
// result, field by field. Otherwise the notebook cannot be continued, and the error names the cell. So a trajectory
// never continues with variables other than those whose effects it has seen; state that no result has shown may differ.
//
// After a cell that ends the interpreter, the next cell runs in a fresh one, and its result says so (Restarted).
package session
