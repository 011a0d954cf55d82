// Package torch is the engine that runs models in PyTorch: it starts the trainer engine that gpu/engine holds,
// speaks gpu/PROTOCOL.md with it, and watches over it. To its callers it is a policy.Engine like any other.
//
// Glossary. A *process* is one life of the engine: one Python process, or torchrun and its *ranks*. A process is
// *lost* when it dies, hangs, breaks the protocol or does not stop when it is told to; whatever was in it
// is gone, and every call but Load says so until the next Load starts another. A *beat* is the engine's sign of
// life, *ticks* in it the work done so far: a call whose ticks stand still *hangs*.
//
// The ranks of a process may lie on several hosts, a *gang*; the others *serve* theirs (Serve) and hold no engine.
//
// Nothing is retried here. A call that has failed with policy.ErrLost has had no effect that outlives it: the
// models are gone, and Save puts a folder in its place only when it is whole.
package torch
