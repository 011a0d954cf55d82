// Package runs is what commands do with runs on the servers: connect, start, follow, steer, resume and report.
//
// A Connector joins the local stack, or the servers that the environment names, and opens a Session. Through a session
// a command starts a run (Begin), follows it (Follow), sends it updates (Update) and reads its result (Report).
// Requests to Temporal are sent again while the server is away or slow (retryTransient).
//
//	Connector.Join → Session ── Begin → Follow → Report
//	                        └─ Update, Resumable, Replay, CheckReplay
package runs
