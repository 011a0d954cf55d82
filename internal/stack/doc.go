// Package stack runs the servers that a command needs on the local machine: a Temporal server with its web UI, an S3
// server over a plain folder, and a worker.
//
// A *part* is one supervised process of the stack: temporal, s3 or worker. It is started when it is first needed;
// commands wait until it is *healthy* (it answers a probe); it logs to a file of its own; and it is restarted when it
// dies. A part whose program fails several times in a row is given up, and the leases that need it are lost. A part
// that is killed from outside is always restarted.
//
// The *supervisor* is the process that owns the parts: a hidden subcommand, started detached by the first command that
// needs a stack. It listens on a Unix socket. If it dies, the kernel ends its children, and the commands that it served
// *take over*: one of them starts the next supervisor, all of them join it, and the servers come back at the same
// addresses.
//
// A *lease* is a command's open connection to the supervisor. When the last lease closes, the supervisor stops the
// parts and exits; a stack that another command uses is never stopped.
//
//	command → Join → lease → supervisor → parts (temporal, s3, worker)
//
// An *existing* server is one that the user's environment selects (Temporal's client configuration; AWS_* variables
// with an endpoint). The stack uses it and does not start its own.
//
// All state is under the *root* folder, .ropewalk by default. All servers listen on loopback only. The package
// supports Linux only.
package stack
