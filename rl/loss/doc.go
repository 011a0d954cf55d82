// Package loss turns per-token outputs of a policy into a loss, its statistics and its cotangents
// in closed form, so that no engine needs to know an algorithm.
//
// # Glossary
//
// Losses are *minimised*. A *row* is one trajectory's tokens, or one turn's; its *mask* m is 1 where
// the policy produced the token. T_i is the number of such tokens, and a row is *live* when T_i > 0; a
// *dead* row counts nowhere. The *importance ratio* is r = exp(l) of the *log-ratio* l = logp −
// old_logp, clamped to ±20. A token's *coefficient* is d(loss)/d(logp) before aggregation; its
// *cotangent* is that after it. A *surrogate* is a policy loss per token: PPOClip, CISPO, SAPO, GSPO,
// GSPOToken, GPG, GPPO, CEGPPO, AEPOClip, ClipCov, KLCov, SelfImitation, BehaviourCloning. An *objective*
// composes a surrogate with a sequence mask, the weights of truncated importance sampling, a KL
// penalty and an entropy bonus. ValueClip is the critic's loss.
//
// An *aggregation* says how token losses become one number, and its *denominator* is counted once
// over a whole mini-batch, so that a mini-batch's loss is the plain sum of its micro-batches' losses,
// however it was cut. A *plan* is what the micro-batches of one mini-batch share. Most objectives are
// planned from masks alone (Objective.Plan); those of which Objective.NeedsMinibatch is true need the
// log-probabilities of all rows first (Prepare).
//
// A row's *count* N says how many copies of it the batch stands for, and its advantages carry the
// copies' whole weight ω: denominators and statistics count the row N times, the policy loss adds
// it once, which equals N copies of weight ω/N each. Quantities without an advantage (entropy, KL
// penalties, −logp, squared value errors) have no weight to carry and are added N times.
//
// # Order and precision
//
// Tokens are widened to float64 and summed in their order; rows' sums are added in sorted order. So
// neither the order of rows nor the number of goroutines changes a bit of a result. Builds with
// GOEXPERIMENT=simd use AVX2 where the processor has it; a sum's last bits may differ between the two
// kinds of build.
//
// # Sources
//
// Each file opens with its equation, source and departures: PPO with clip-higher and dual clip
// (ppo.go), aggregation modes (aggregate.go), KL estimators (kl.go) and so on, one concept a file.
// SAMPO is GSPO with another advantage and a filter, so it has no file here.
package loss
