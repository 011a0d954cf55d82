// Package resample decides which trajectories of a step enter its update, how often and with what weight. For
// each of the others it gives the reason.
//
// Glossary. A *group* holds the trajectories of one prompt; more of them are sampled than kept
// (samples_per_prompt). A *positive* has a reward > 0. *RoC*, resample-on-correct (rStar2), keeps
// about half of each group: negatives at random, positives preferably those with the least
// *penalty*, which adds failing tool calls (p_err) and surplus answers (p_format). *VSPO* drops
// groups whose rewards hardly vary and instead repeats groups from which there is most to learn. *N* is how
// often a group then occurs and *ω* its smoothing weight. A row's *count* is N, its *weight* is ω: the batch
// holds the row once with A·ω, and denominators count it N times, which equals N copies of weight ω/N.
//
// A *chain* is an ordered list of *links* with their settings. The *rules* come first: dynamic sampling, RejectEqual,
// LowVariance, ValueResampling (VSPO) and RoC *drop* rows. The *filters* come last and *mask* rows. A dropped row
// leaves the step. A masked row stays: its reward remains in the group's statistics, and its loss mask becomes 0. Each
// drop and mask has a *reason*. Recipes switch rules and filters on by name: the file of each holds its declaration,
// and Rules and Filters list them. A group is *informative* if its rewards differ; *dynamic sampling* rolls out more
// groups until enough are. A *mixed* group has turns of several versions of the policy; OneVersion drops such groups
// where the recipe asks for it (pipeline.mixed_groups), after dynamic sampling and before the other rules. A *void*
// turn has neither a tool call nor an answer; a *loose* turn is not in the environment's strict form.
//
// SPEAR's *replay buffer* D holds the names of rows with a positive advantage. When it is *full*, the rows are
// evaluated again with the *baseline queue* D_R, the mean rewards of recent groups: Ã is the reward minus the
// queue's median P50. Rows with Ã > 0 are *imitated* in the step's replay update, the others are *retired*, and
// D is emptied. The *behaviour-cloning* filter picks the episodes of a teacher to learn from.
//
// If VSPO and RoC are both on, VSPO's mean, variance, R_max and draws use all sampled rewards, before RoC.
// VSPO drops the groups without variance. RoC then selects inside the groups that are left, and advantages use
// the rows that RoC kept. If no group has variance, nothing is kept and the update must be skipped. VSPO alone
// keeps such a batch whole, with weight 1, as in its paper. RoC alone drops groups of equal rewards.
//
// An *excluded* row was sampled, and something other than the policy broke it. It has no reward, takes part in
// no statistic and no draw, and its verdict is that reason. A *short* group has fewer than two rows left after
// exclusions. It is dropped before VSPO, so it counts neither as a group without variance nor in R_max.
//
// Rows are put in canonical order (group, then trajectory) before anything is drawn, and each group has its own
// random stream. So the outcome depends neither on the order of the rows nor on the sizes of other groups.
//
// State between steps (Buffer, Accumulation) is a plain value: a function takes the old one and returns the new
// one, so that it can be committed with its step.
//
// Sources: rStar2-Agent section 2.2.3 and its release; VSPO eqs 16–21; DAPO and ARLArena; SPEAR Algorithm 1, eqs
// 6–8 and its release. Each file opens with its own source and departures. RoC's counts follow the group's
// true size if rollouts were excluded (the paper writes half of 2G).
package resample
