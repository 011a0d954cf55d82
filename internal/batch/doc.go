// Package batch makes a step's training batch out of committed rows. It is a function of these rows and the recipe.
//
//	selection, rewards, turns ── Kept ──▶ sequences ── JoinOutputs, JoinTransitions ──▶ Estimate ──▶ batch rows
//
// Glossary. A *sequence* is one kept trajectory: its tokens, turn after turn. A *row* is what the update reads as one
// sample: a whole trajectory or, in layout turns, one turn with what the policy saw before it. The *score* of a row is
// the reward that its estimator reads. A *piece* is what a model reads at once to give the outputs of tokens. *Token
// outputs* are the values of tokens that models compute: log-probabilities, entropies, values of the critic. The
// *history* says which of its earlier turns a policy sees.
package batch
