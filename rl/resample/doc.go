// Package resample decides which trajectories of a step enter its update, how often and with what
// weight, and says of each other one why not.
//
// Glossary. A *group* holds the trajectories of one prompt; more of them are sampled than kept
// (*oversampling*). A *positive* has a reward > 0. *RoC*, resample-on-correct (rStar2), keeps
// about half of each group: negatives at random, positives preferably those with the least
// *penalty*, which adds failing tool calls (p_err) and surplus answers (p_format). *VSPO* drops
// groups whose rewards hardly vary and repeats, in their place, groups with most to teach; *N* is
// how often a group then occurs and *ω* its smoothing weight. A row's *count* is N, its *weight*
// is ω: the batch holds it once with A·ω and denominators count it N times, which equals N copies
// of weight ω/N.
//
// The chain, where both are on: VSPO's mean, variance, R_max and draws use all oversampled
// rewards, before RoC; its dropped set are the zero-variance groups; RoC then selects inside the
// groups that are left, and advantages use the rows that it kept. If every group lacks variance
// nothing is kept and the update is to be skipped. VSPO alone keeps such a batch whole, with
// weight 1, as its paper does. RoC alone drops groups of equal rewards.
//
// An *excluded* row was sampled and something other than the policy broke it: it has no reward, is
// in no statistic and no draw, and its verdict is that reason. A *short* group is one that
// exclusions left fewer than two rows: it is dropped before VSPO, so that it counts neither as a
// group without variance nor in R_max.
//
// Rows are put in canonical order (group, then trajectory) before anything is drawn, and each
// group has a random stream of its own, so the outcome depends on neither the order of the rows
// nor the other groups' sizes.
//
// Sources: rStar2-Agent section 2.2.2 and its release; VSPO eqs 17–21. Departures: RoC's counts
// follow the group's true size where rollouts were excluded (the paper writes half of 2G).
package resample
