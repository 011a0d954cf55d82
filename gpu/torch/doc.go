// Package torch is the engine that runs models in PyTorch. It starts the trainer engine in gpu/engine, talks to it by
// gpu/PROTOCOL.md, and supervises it. To its callers it is a policy.Engine like any other.
//
// Glossary. A *process* is one life of the engine: one Python process, or torchrun and its *ranks*. A process is
// *lost* when it dies, hangs, breaks the protocol or does not stop when it is told to. Its models are then gone, and
// every call except Load fails until the next Load starts another process. A *beat* is the engine's sign of life; its
// *ticks* count the work done so far. A call whose ticks do not grow *hangs*.
//
// The ranks of a process may run on several hosts, a *gang*. The other hosts only *serve* their ranks (Serve) and hold
// no engine.
//
// This package retries nothing. A call that failed with policy.ErrLost has no lasting effect: the models are gone, and
// Save moves a folder into place only when it is complete.
package torch
