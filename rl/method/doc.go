// Package method composes a method of policy optimisation out of independent choices.
//
// Glossary. A *slot* is a place where a method makes one choice: the advantage estimator, the loss,
// its aggregation, each resampler, each filter, the reward, … A *choice* is one name that a slot
// takes, with its source and the *parameters* that it reads. A method must not set a parameter that its
// choice does not read. A *switch* is a slot with the one choice "on". A *pick* is a slot with the choice
// that a method makes there. A *rule* refuses a combination of choices that makes no sense. *Needs* are what
// the picks require from a pipeline beyond sampled tokens and rewards. The *dimensions* are the four by which
// ARLArena (Table 1) sorts methods: loss aggregation, importance-sampling clip, dynamic filtering, advantage
// design.
//
// Losses, estimators, rewards and filters declare themselves in rl/loss, rl/advantage, rl/reward and rl/resample;
// the package choice says how. The slot table (Slots) joins these declarations with the slots that are defined
// here. The structs of this package hold the settings that more than one choice reads, and their tags describe
// each field. Package recipes reads both and has no second definition of either.
//
//	json      the name in a recipe
//	doc       what it is, with its unit
//	default   the value when absent, as YAML; a choice of the slot table may have its own
//	required  "true": there is no default
//	min, max  inclusive limits
//	above     exclusive lower limit
//	enum      the names allowed, separated by |; those of a slot are in the slot table
//	only      the environments that the field belongs to
//	quiet     "true": left out of a recipe's canonical form at its default
//
// The packages rl/advantage, rl/loss, rl/resample, rl/reward and rl/schedule implement the choices.
package method
