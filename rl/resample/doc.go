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
// A *chain* is an ordered list of *links*, each a filter with its settings: RejectEqual, LowVariance,
// HardProblems, ValueResampling (VSPO) and RoC drop, Overlong, Void, Repetition and Unreadable *mask*.
// A dropped row is out of the step. A masked one stays, with its reward in the group's statistics,
// and its loss mask becomes 0. Each drop and mask has a *reason*. A group is *informative* if its
// rewards differ; *dynamic sampling* rolls out more groups until enough are. A *void* turn has
// neither a tool call nor an answer; a *loose* turn is not in the environment's strict form.
//
// SPEAR's *replay buffer* D remembers rows of positive advantage by name. When it is *full* they
// are judged again by the *baseline queue* D_R, the mean rewards of recent groups: Ã is the reward less
// its median P50. Those with Ã > 0 are *imitated* in the step's replay update, the others *retired*, and
// D is emptied. The *behaviour-cloning* filter picks the episodes of a teacher to learn from.
//
// The chain of Options, where both are on: VSPO's mean, variance, R_max and draws use all oversampled
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
// What crosses steps (Buffer, Accumulation) is a plain value: a function takes the old one and
// returns the new one, so that it can be committed with the step that it belongs to.
//
// Sources: rStar2-Agent section 2.2.2 and its release; VSPO eqs 17–21; DAPO and ARLArena; SPEAR
// Algorithm 1, eqs 6–8 and its release. Each file opens with its own source and departures. RoC's
// counts follow the group's true size where rollouts were excluded (the paper writes half of 2G).
package resample
