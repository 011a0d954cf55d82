// Package stack runs the servers that a command needs on the local machine: a Temporal server with its web UI, an S3
// server over a plain folder, and a worker.
//
// Each server has a *supervisor*: a process of its own, which the first command that needs the server starts detached.
// The supervisor starts the server, waits until it is *healthy* (it answers a probe), has it log to a file of its own,
// and restarts it when it dies. A server whose program fails several times in a row is given up, and the commands that
// use it have lost the stack. A server that is killed from outside is always restarted.
//
// Commands and supervisors meet in files of the folder "servers". NAME.lock is locked by the supervisor as long as it
// lives. NAME.users is locked, shared, by every command that uses the server; once its supervisor gets that lock for
// itself, no one uses the server, and the supervisor stops it. NAME.json is the *state*: what the supervisor tells the
// commands, which read it again and again. The kernel releases the locks of a process that is killed.
//
// If a supervisor is killed, the kernel ends its server. The commands that use the server notice, one of them starts
// the next supervisor, and the server comes back at the same address.
//
// A *lease* is what a command holds while it uses the stack.
//
//	command → Join → lease → supervisor of temporal, s3, worker → server
//
// An *existing* server is one that the user's environment selects (Temporal's client configuration; AWS_* variables
// with an endpoint). The stack uses it and does not start its own.
//
// All state is under the *root* folder, .ropewalk by default. All servers listen on loopback only. The package
// supports Linux only.
package stack
