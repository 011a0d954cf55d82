// Package schedule gives what depends on the step alone.
//
// Glossary. Steps count from 0 throughout. *Warm-up* raises the learning rate linearly from
// base/warmup to base over the first steps; *decay* then takes it from base towards 0 at the last
// step. A *ramp* is a weight of [0, 1] that rises or falls over a number of steps and then stays:
// SPEAR's curriculum has two, *γ(t)*, by which self-imitation enters the loss, and *μ(t)*, by which
// the tool reward leaves the total reward. A *stage* is a run of steps under the same response
// length, learning rate and set of problems; at a stage's first step come its *transitions*: the
// problems are *filtered* by how the policy so far fares at them, the optimizer's moments are
// *reset*, the reference policy is *refreshed* with the current one.
//
// Sources: SPEAR section 4.2 and A.2 for γ and μ; rStar2-Agent section 4.3 for the stages.
// Degenerate settings: a ramp of no steps is none, its weight is 1 throughout; a schedule without
// stages is refused.
package schedule
