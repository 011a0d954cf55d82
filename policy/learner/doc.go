// Package learner moves a policy: it cuts a batch for the optimiser, asks the engine for per-token
// outputs, turns them into cotangents through rl/loss and steps.
//
// Glossary. A *mini-batch* is what one optimiser step sees; a *micro-batch* is the part of it that
// one forward pass holds, bounded in tokens. An *epoch* is one pass over the batch, and each
// shuffles it anew. The *drift* is how far the first forward pass of an update lies from the
// recorded behaviour log-probabilities, before any step: 0 up to rounding when the engine that
// generated and the engine that learns hold the same weights. *Cloning* is behaviour cloning on
// demonstrations. *Terms* are what a loss holds beside its surrogate: a penalty on the divergence from a
// *reference* policy, an entropy bonus, the weights of truncated importance sampling.
//
// What an update does follows from the batch's rows, the settings and one random stream; neither
// the order of the rows nor the size of the micro-batches decides which rows meet in a step.
package learner
