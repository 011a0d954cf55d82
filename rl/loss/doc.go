// Package loss turns per-token outputs of a policy into a loss, its statistics and its cotangents
// in closed form, so that no engine needs to know an algorithm.
//
// # Glossary
//
// Losses are *minimised*. A *row* is one trajectory's tokens, or one turn's; its *mask* m is 1 where
// the policy produced the token. T_i is the number of such tokens. A row is *live* if T_i > 0; a
// *dead* row is not counted anywhere. The *importance ratio* is r = exp(l), where l = logp − old_logp is the
// *log-ratio*, clamped to ±20. A token's *coefficient* is d(loss)/d(logp) before aggregation; its
// *cotangent* is the same after aggregation. A *surrogate* is a policy loss per token: PPOClip, CISPO, SAPO,
// GSPO, GSPOToken, GPG, GPPO, CEGPPO, AEPOClip, ClipCov, KLCov, SelfImitation, BehaviourCloning. An
// *objective* composes a surrogate with a sequence mask, the weights of truncated importance sampling, a KL
// penalty and an entropy bonus. ValueClip is the critic's loss.
//
// Recipes choose a surrogate by name. The file of each one holds its Declaration: name, source, parameters, rules and
// the settings that tests use. Declarations lists them.
//
// Three log-probabilities of a sampled token are kept apart. *rollout* is the sampler's, of the distribution that it
// drew from, temperature and top-p/k included. *behaviour* is the trainer's, of the weights that sampled. *proximal* is
// the trainer's before the first update of the step that learns from the token. Old is the denominator of every ratio:
// of a token's, of GSPO's for a row, and of the sequence mask's mean. It is proximal if the recipe recomputes it. A
// step learns from what the policy before it has sampled, so behaviour and proximal are then the same numbers; rows
// from a replay buffer keep their behaviour as Old. rollout is in no ratio and decides no clip and no mask: it only
// enters the constant weights of truncated importance sampling, exp(Old − Rollout).
//
// An *aggregation* says how token losses become one number, and its *denominator* is counted once
// over a whole mini-batch, so that a mini-batch's loss is the plain sum of its micro-batches' losses,
// however it was cut. A *plan* holds what the micro-batches of one mini-batch share. Most objectives are
// planned from masks alone (Objective.Plan). If Objective.NeedsMinibatch is true, the plan needs the
// log-probabilities of all rows first (Prepare).
//
// A row's *count* N says how many copies of the row the batch represents. Its advantages carry the
// copies' whole weight ω. So denominators and statistics count the row N times, and the policy loss adds
// it once, which equals N copies of weight ω/N each. Quantities without an advantage (entropy, KL
// penalties, −logp, squared value errors) carry no weight and are added N times.
//
// # Order and precision
//
// Tokens are widened to float64 and summed in their order. The sums of rows are added in sorted order. So
// neither the order of rows nor the number of goroutines changes a bit of a result. Builds with
// GOEXPERIMENT=simd use AVX2 if the processor has it. The last bits of a sum may differ between the two
// kinds of build.
//
// # Sources
//
// Each file opens with its equation, source and departures: PPO with clip-higher and dual clip
// (ppo.go), aggregation modes (aggregate.go), KL estimators (kl.go) and so on, one concept in each file.
// SAMPO is GSPO with another advantage and a filter, so it has no file here.
package loss
