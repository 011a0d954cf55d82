// Package training turns a recipe into the configuration of policy/learner: what an update minimises, how it cuts the
// batch, and the steps of its optimisers.
//
// Glossary. The *objective* is the recipe's loss with all its terms. *Imitation* is learning again from the rows of
// the replay buffer; *gamma* is its weight at a step. *Cloning* is the warm start's supervised learning.
package training
