// Package policy defines what runs language models for the pipeline: the contracts Sampler and Trainer, what their
// calls take and return, and the errors that they return. The engine for a CPU is in cpu/, the conformance suites are
// in internal/testing/policytest.
//
// Glossary. A *sampler* loads published policies and generates with them. A *trainer* loads checkpoints, computes
// per-token outputs and gradients, takes optimiser steps, and saves. An *engine* is both, over the same models: what
// its trainer has stepped, its sampler generates with. *Capabilities* are what a sampler states about itself; a
// *demand* is a capability that a recipe's field needs. A *role* names one of the models that a sampler or trainer may
// hold at once. A *prefix* is the token ids before a response. A *stream* is the seed of all randomness of one row. A
// *cotangent* is d(loss)/d(output) of one token. A trainer never sees the loss itself, so every algorithm in rl/ runs
// on every trainer.
//
//	checkpoint folder ─Load→ Sampler ─Generate→ tokens, log-probs, entropies → rollout
//	checkpoint folder ─Load→ Trainer ─Forward→ outputs → rl/loss → cotangents ─Backward, Step, Save→ checkpoint folder
package policy
