// Package rl holds the algorithms of agentic policy optimisation as pure functions: slices in,
// slices out, and time, randomness and identity as inputs. They serve every engine alike; this
// package itself only tests them together, against vectors that an independent implementation made.
//
// The data of one training step flows through them from left to right and down:
//
//	trajectories, turns                  verdicts of tools, tests, judges
//	        │                                           │
//	        ▼                                           ▼
//	┌───────────────┐   one scalar R a row    ┌──────────────────┐
//	│ rows, grouped │ ──────────────────────▶ │ rl/reward        │ ◀── μ(t) ──┐
//	│ by prompt     │ ◀────────────────────── │ text → R         │            │
//	└───────┬───────┘                         └──────────────────┘            │
//	        │ rows with R                                                     │
//	        ▼                                                                 │
//	┌──────────────────────────────────────────────────────────┐      ┌───────┴───────┐
//	│ rl/resample: filters, RoC, dynamic sampling, VSPO, replay│ ◀─── │ rl/schedule   │
//	│ which rows enter, how often (N), with what weight (ω),   │      │ learning rate,│
//	│ and of each other row why not                            │      │ γ(t), μ(t),   │
//	└───────┬──────────────────────────────────────────────────┘      │ stages        │
//	        │ kept rows with N and ω          old log-probabilities,  └───────┬───────┘
//	        │                                 entropies, values               │
//	        ▼                                     │        │                  │
//	┌──────────────────────────────────────┐      │        │                  │
//	│ rl/advantage: group, turn and token  │ ◀────┘        │                  │
//	│ estimators; R → A of each token, A·ω │               │                  │
//	└───────┬──────────────────────────────┘               │                  │
//	        │ A·ω, mask                                    │                  │
//	        ▼                                              ▼                  │
//	┌──────────────────────────────────────────────────────────┐              │
//	│ rl/loss: clip, aggregation, KL and entropy penalties,    │ ◀── γ(t) ────┘
//	│ global denominators over micro-batches and ranks         │
//	└───────┬──────────────────────────────────────────────────┘
//	        │ loss, statistics, and the cotangents
//	        ▼ ∂loss/∂logp, ∂loss/∂entropy, ∂loss/∂value, token by token
//	   the engine's backward pass
//
//	every arrow can be looked at ──▶ rl/diagnose: entropy, divergence, clipping, tool errors, …
//
// # Which package does what
//
//   - rl/reward turns what a trajectory says, and the verdicts on it, into its reward R.
//   - rl/resample decides which rows enter the update; every drop carries its reason.
//   - rl/advantage says how much better a row, a turn or a token is than its like.
//   - rl/loss turns log-probabilities and advantages into a loss and its cotangents in closed form,
//     so that no engine needs to know an algorithm.
//   - rl/schedule gives what depends on the step alone.
//   - rl/method names one choice of each of these, checks that the choices make sense together, and
//     says what they need; its slot table is where recipes, their schema and their documents come from.
//   - rl/diagnose says, at every step and after the run, how training goes.
//   - rl/internal/exact sums without rounding; internal/testing/vectors reads the test vectors.
//
// What decides during a rollout is elsewhere: rollout/branch, where a chain of tool calls is worth branching (AEPO,
// ARPO); rollout/debate; policy/scheduler, which engine runs which episode, and when (rStar2's scheduler). The vectors
// here test it too.
//
// # What holds everywhere
//
// A *row* is one trajectory, or one turn of it where a trajectory is cut into turns; its *mask* is 1
// where the policy produced the token. A *group* is the set of rows that answer one prompt. Rows
// are put into the order of group, sample and turn, or summed in sorted or exact form, before
// order could change a bit: no result depends on the order of the input, on shards or on padding.
// Masked tokens and rows without a token under the mask matter nowhere. Sums are float64. Degenerate
// input (nothing, one row, everything masked, everything equal) has a documented result and never
// gives NaN; input that breaks an invariant gives an error that names the row and the token.
// Every algorithm's file opens with its equation, its source and where it departs from it.
package rl
