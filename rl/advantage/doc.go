// Package advantage turns rewards into advantages.
//
// Glossary. A *row* is what a loss sees: a whole trajectory, or in the turn layout one of its turns
// (Row names it: group, trajectory, turn). A *group* is the set of rows that answer one prompt. A
// *score* is the scalar reward of one row. The *advantage* says how much better a row is than its
// group; every token that the policy produced carries its row's advantage (Broadcast), unless an
// estimator works per token. The *mask* is 1 for those tokens and 0 for prompt, tool output and
// padding. *Whitening* gives the valid tokens of a batch mean 0 and deviation 1. An *anchor group* is
// the turns of one group that met the same observation. *Standard deviation* is the sample one (n−1)
// throughout; *variance* in VSPO is the population one (n). The *value score* of a prompt says how
// much there is to learn from it; *N* is how often a prompt occurs in a resampled batch and the
// *smoothing weight* ω keeps the repeats from dominating. The *baseline queue* holds the mean rewards
// of the latest groups, whose median (P50) replayed trajectories are measured against.
//
//	Group                 group.go              GRPO, Dr.GRPO             a score per row → an advantage per row
//	TurnRows              turn_rows.go          the same over turn rows   score → advantage
//	RLOO                  rloo.go               leave one out             score → advantage
//	OPO                   opo.go                baseline by length        score and length → advantage
//	GPG                   gpg.go                makes up for idle rows    score → advantage
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
// Order. What depends on the order of rows is done in the canonical one (group, trajectory, turn), or
// as sums over sorted values, in float64; so no result depends on the order of the rows, on padding
// or on how groups are spread over shards, not even in the last bit. Whitening, EMPG and AEPO's batch
// scope are over the whole batch by definition, and must be given all of it.
//
// Refusals. Values that are not finite, lengths that differ, masks that are not 0 or 1 and two rows of
// one name are errors that name row and token. Values under mask 0 are read only where a file says so.
//
// Degenerate input. Equal scores give exactly 0 in the group estimators; a group of one keeps its raw
// score (divided by 1+ε where the deviation is divided out) or gives 0, as SingleGroup says; an anchor
// group of one gives 0; tokens of equal entropy have z = 0; rows without a valid token give 0 per
// token, and EMPG leaves them out (Dead); no rows give no rows.
package advantage
