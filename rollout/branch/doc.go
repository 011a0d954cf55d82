// Package branch decides where a tree-shaped rollout branches: how many trajectories start at the
// root, and after which tool results one continues along several paths.
//
// Glossary. A *root* is a trajectory that starts at the prompt (AEPO's global sample); a *branch* is
// a copy that starts in the middle of another (partial sample) and shares everything before, mask
// and log-probabilities included. A *chain* is one path from the prompt to its last token. k is the
// *total* number of leaves, m the number of roots, and b = k − m the number of branches. A *segment* is
// what the policy writes between two tool results. *H* is the entropy of a segment's first
// tokens, in nats; *normalised* entropy is divided by ln V, where V is the size of the vocabulary. *ΔH* is H
// after a tool result minus the chain's H at its root. The *streak* l counts a chain's consecutive branches;
// the *slope* says how fast a streak lowers the probability to branch.
//
// The paper names several constants twice (γ is Algorithm 1's slope and eq 6's weight of the
// entropy, β is eq 5's sensitivity and Algorithm 1's weight of the entropy, α is eq 6's base
// probability and the weight of the entropy in the advantage). Here they are Base, EntropyWeight,
// Slope, Threshold and Sensitivity.
//
// Nothing here draws random numbers: where a method is random, a uniform number in [0, 1) is an argument.
// Sources: AEPO sections 3.1.1 and 3.1.2, ARPO, and their releases.
package branch
