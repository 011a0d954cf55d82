// Package learner trains a policy: it splits a batch for the optimiser, asks a policy.Trainer for per-token outputs,
// turns them into cotangents through rl/loss, and takes optimiser steps.
//
// Glossary. A *mini-batch* is the rows of one optimiser step. A *micro-batch* is the part of a mini-batch in one
// forward pass, bounded in tokens. An *epoch* is one pass over the batch; each epoch shuffles the batch again. The
// *drift* is the difference between the first forward pass of an update, before any step, and the recorded log-probs of
// the behaviour policy. It is 0 up to rounding if the engine that generated and the engine that learns hold the same
// weights. *Cloning* is behaviour cloning on demonstrations. *Terms* are the parts of a loss other than its surrogate:
// a penalty on the divergence from a *reference* policy, an entropy bonus, the weights of truncated importance
// sampling.
//
// An update depends only on the batch's rows, the settings and one random stream. Neither the order of the rows nor the
// size of the micro-batches decides which rows share a step.
package learner
