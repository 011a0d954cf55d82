// Package service offers an executor over the network: HTTP and JSON for people and other languages, a gRPC stream for
// throughput, and the requests of SandboxFusion. Service is its main type.
//
//	stream or HTTP request ─▶ job ─▶ queue ─▶ worker ─▶ Executor
//	        ▲                                               │
//	        └──────────── receiver ◀──── answer ◀───────────┘
//
// The words of the package:
//
//   - A *job* is one call that the service has accepted. It *waits*, runs, and gets an *answer*: a verdict or a
//     failure.
//   - A *client* is a program with tokens of its own. Its *quota* bounds what it has in the service at once. Clients
//     are served in turn.
//   - A *receiver* is where answers go: one stream or one HTTP request of a client. The receivers of a client are
//     served in turn; the jobs of one receiver keep their order.
//   - The *queue* holds the waiting jobs. It is bounded in bytes; while it is full, no requests are read.
//   - A *key* is a client's name for its job. Jobs of a client with the same key run once: later ones join the first
//     or get the answer that is kept. Only verdicts are kept, for a limited time.
//   - While *draining*, the service finishes its jobs and accepts no more.
//
// PROTOCOL.md specifies the stream, openapi.json the HTTP interface.
package service
