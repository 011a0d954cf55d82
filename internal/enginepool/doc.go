// Package enginepool holds the engines of a worker and says which run uses which. Stages lease a Sampler or a Trainer
// from its Pool, use it with a committed version of a model resident, and give it back. PlanHere tells which engine a
// recipe would get on this machine, and what memory it would take.
//
// Glossary. An *engine* is a policy.Engine, or a policy.Sampler or policy.Trainer alone. The *CPU engine* belongs to
// all runs of the worker and is never leased. A *PyTorch engine* belongs to one run at a time and takes *devices*;
// a Maker opens it, on devices that are leased for the life of the engine (gpu/lease). An engine *drains* when one of
// its devices fails: its process is ended, the running call fails with the device's failure (policy.DeviceError), and
// the next Load takes other devices. An engine on several hosts *gathers* the other hosts, which *serve* it (gpu/gang).
// A *slot* is a PyTorch engine's share of the devices, from the moment at which it begins to open
// until it has closed. A *lease* is a stage's use of an engine; an engine without leases is *idle*, and is closed when
// another run needs its devices or after five minutes. A *resident* model is one that an engine holds under a role;
// residents are known by their *version*, the digest of their checkpoint. The *choice* is the kind of engine that a run
// has from its preparation on. *Room* is devices that the pool leaves to ranks of another host's engine.
//
//	recipe ─Choose→ Choice (noted in the run's first manifest)
//	run, recipe ─Pool.Trainer, Pool.Sampler→ lease ─Use(version)→ policy.Trainer, policy.Sampler
package enginepool
