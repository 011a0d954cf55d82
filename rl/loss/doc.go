// Package loss turns per-token outputs of a policy into a loss, its statistics and its cotangents
// in closed form, so that no engine needs to know an algorithm.
//
// Glossary. Losses are *minimised*. A *row* is one trajectory's tokens; its *mask* m is 1 where the
// policy produced the token. T_i is the number of such tokens, and a row is *live* when T_i > 0; a
// *dead* row counts nowhere. The *importance ratio* is r = exp(logp − old_logp), its logarithm
// clamped to ±20. A token's *coefficient* is d(loss)/d(logp) before aggregation; its *cotangent*
// is that after it. An *aggregation* says how token losses become one number, and its
// *denominator* is counted once over a whole mini-batch, so that a mini-batch's loss is the plain
// sum of its micro-batches' losses, however it was cut.
//
// A row's *count* N says how many copies of it the batch stands for, and its advantages carry the
// copies' whole weight ω: denominators and statistics count the row N times, the policy loss adds
// it once, which equals N copies of weight ω/N each. Quantities without an advantage (entropy,
// KL penalties) have no weight to carry and are added N times.
//
// All arithmetic is float64, in row order.
//
// Sources: PPO (Schulman et al. 2017); clip-higher of DAPO (Yu et al. 2025); dual clip (Ye et al.
// 2020); Dr.GRPO's constant length norm (Liu et al. 2025); KL estimators k1–k3 (Schulman 2020).
package loss
