// Package schedule computes settings that depend on the step alone: learning rates, weights and stages.
//
// Glossary. Steps count from 0. *Warm-up* raises the learning rate linearly from base/warmup to base over the
// first steps; *decay* then lowers it from base towards 0 at the last step. SPEAR's *curriculum* has two weights in
// [0, 1] that move over a *horizon* of steps and are constant afterwards: *γ(t)* is the weight of self-imitation in the
// loss, *μ(t)* that of the tool reward in the total reward. A *stage* is a range of steps with the same response
// length, learning rate and set of problems. At a stage's first step the optimizer's moments can be *reset*, and the
// reference policy can be *refreshed* with the current one.
//
// Each schedule declares itself (Declarations), and so does each kind of decay (Decays).
//
// Sources: SPEAR section 4.2 and A.2 for γ and μ; rStar2-Agent section 4.3 for the stages.
// Degenerate settings: a weight with the horizon 0 is 1 at every step; without stages nothing changes.
package schedule
