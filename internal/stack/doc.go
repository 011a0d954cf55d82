// Package stack runs what a command needs on the local machine: a Temporal server with its web UI,
// an S3 server over a plain folder, and a worker.
//
// A *part* is one supervised process of the stack: temporal, s3 or worker. It is started when first
// needed, waited for until *healthy* (it answers a probe), logged to a file of its own, and
// restarted when it dies. A part that dies quickly several times running is given up, and the
// stack with it.
//
// The *supervisor* is the process that owns the parts: a hidden subcommand, started detached by the
// first command that needs a stack. It listens on a unix socket. If it dies, the kernel ends its
// children.
//
// A *lease* is one command's open connection to the supervisor. When the last lease closes, the
// supervisor stops the parts and exits; a stack that another command uses is never stopped.
//
// An *existing* server is one that the user's environment selects (Temporal's client configuration;
// AWS_* variables with an endpoint). The stack uses it and starts none of its own.
//
// Everything lives under the *root* folder, .ropewalk by default, and listens on 127.0.0.1 only. Linux only.
package stack
