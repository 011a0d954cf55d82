// Package advantage turns rewards into advantages.
//
// Glossary. A *group* is the set of rows that answer one prompt. A *score* is the scalar reward of
// one row. The *advantage* says how much better a row is than its group; every token that the
// policy produced carries its row's advantage. *Standard deviation* is the sample one (n−1)
// throughout; *variance* in VSPO is the population one (n). The *value score* of a prompt says how
// much there is to learn from it; *N* is how often a prompt occurs in a resampled batch and the
// *smoothing weight* ω keeps the repeats from dominating.
//
// Sums run over sorted values in float64, so no result depends on the order of the rows or on
// how groups are spread over shards, not even in the last bit.
//
// Sources: GRPO (Shao et al. 2024), Dr.GRPO (Liu et al. 2025), VSPO eqs 17–21.
// Degenerate groups: equal scores give exactly 0; a group of one keeps its raw score (divided by
// 1+ε where the deviation is divided out) or gives 0, as SingleGroup says; no rows give no rows.
package advantage
