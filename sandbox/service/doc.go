// Package service offers an executor over the network: HTTP and JSON for people and other languages,
// a gRPC stream for throughput, and the requests of SandboxFusion and code-judge. Its words:
//
//   - A *job* is one call that was taken in; it *waits*, runs, and has an *answer*: a verdict or a failure.
//   - A *lane* is where answers go: one stream or one HTTP request. Lanes take turns, jobs of a lane keep their order.
//   - The *queue* holds jobs that wait. It is bounded in bytes; while it is full, nobody's requests are read.
//   - A *key* is what a client calls its job. Jobs of one key run once: later ones join the first or
//     get the answer that is kept. Only verdicts are kept, for a while.
//   - *Draining*, the service finishes the jobs it has and takes no more.
//
// PROTOCOL.md specifies the stream, openapi.json the rest.
package service
