// Package advantage turns rewards into advantages.
//
// Glossary. A *row* is what a loss sees: a whole trajectory, or in the turn layout one of its turns
// (Row names it: group, trajectory, turn). A *group* is the set of rows that answer one prompt. A
// *score* is the scalar reward of one row. The *advantage* says how much better a row is than its
// group. Every token that the policy produced carries its row's advantage (Broadcast), unless an
// estimator works per token. The *mask* is 1 for those tokens and 0 for prompt, tool output and
// padding. *Whitening* gives the valid tokens of a batch mean 0 and deviation 1. An *anchor group* is
// the turns of one group that met the same observation. *Standard deviation* always means the sample
// one (n−1); *variance* in VSPO means the population one (n). The *value score* of a prompt says how
// much there is to learn from it. *N* is how often a prompt occurs in a resampled batch, and the
// *smoothing weight* ω keeps the repeats from dominating. The *baseline queue* holds the mean rewards
// of the latest groups. Replayed trajectories are compared with its median (P50).
//
// Recipes choose an estimator by name. The file of each estimator holds its Declaration: name, source, parameters and
// the Estimator that runs over the rows of a Batch. Declarations lists them.
//
//	Group                 group.go              GRPO, Dr.GRPO             a score per row → an advantage per row
//	TurnRows              turn_rows.go          the same over turn rows   score → advantage
//	RLOO                  rloo.go               leave one out             score → advantage
//	OPO                   opo.go                baseline by length        score and length → advantage
//	GPG                   gpg.go                scaled up for idle rows   score → advantage
//	ReinforcePP           reinforce_pp.go       REINFORCE++               reward per token → per token
//	ReinforcePPBaseline   reinforce_pp.go       with the group's mean     score → per token
//	GAE                   gae.go                PPO                       reward and value per token → per token
//	GiGPO                 gigpo.go, anchors.go  episodes and anchors      turns → advantage
//	RatcliffObershelp     similarity.go         similar observations      two texts → ratio
//	EMPG                  empg.go               modulated by entropy      advantage → advantage
//	AEPO                  aepo.go               modulated by entropy      advantage → per token
//	Recalibration         spear.go              SPEAR's replay            collected rows → advantage, keep
//	VSPO                  vspo.go               value scores, repeats     groups of scores → N, ω
//
// Each file opens with its equation, its source and the departures from it.
//
// Order. Everything that depends on the order of rows uses the canonical one (group, trajectory, turn) or
// sums sorted values, in float64. So no result depends on the order of the rows, on padding or on how
// groups are spread over shards, not even in the last bit. Whitening, EMPG and AEPO's batch scope are
// defined over the whole batch and must be given all of it.
//
// Errors. Values that are not finite, lengths that differ, masks that are not 0 or 1 and two rows with
// the same name are errors that name row and token. Values under mask 0 are read only where a file says that.
//
// Degenerate input. Equal scores give exactly 0 in the group estimators. A group of one keeps its raw
// score (divided by 1+ε where the deviation is divided out) or gives 0, as SingleGroup says. An anchor
// group of one gives 0. Tokens of equal entropy have z = 0. Rows without a valid token give 0 per
// token, and EMPG leaves them out (Dead). An empty batch gives an empty result.
package advantage
