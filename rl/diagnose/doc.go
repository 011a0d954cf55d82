// Package diagnose holds statistics about a run: how far the policy has moved, where its updates are clipped,
// what its trajectories cost and whether it still learns.
//
// Glossary. A *gathering* takes rows, trajectories or groups by Add and gives a *report*, a plain struct of results;
// its zero value is empty unless there is a New for it. *Live* rows have at least one token under the mask; tokens
// outside the mask and dead rows are not counted. A *share* or *fraction* is in [0, 1]; it is 0 if its denominator is
// 0. A *variance* is the population one (n). *Percentiles* interpolate linearly (type 7 of Hyndman & Fan 1996). The
// *importance ratio* is exp(logp − old); a *sequence ratio* is exp of its mean logarithm over a row. An *anchor group*
// holds the turns of one prompt that start from one observation; a *branch* is a trajectory that leaves another at a
// tool call. A *unit* is what a bootstrap resamples: a problem with the mean of its samples, never a single sample,
// since the samples of one problem are not independent.
//
// No result depends on the order in which inputs are added, not even in the last bit: sums are exact until they are
// read (rl/internal/exact), counts are whole numbers, and lists are sorted. Every row counts once; only the loss counts
// the copies that resampling makes.
//
// Each file holds one diagnosis. What follows from a table's columns by counts and means alone is not here: the
// report's questions (analysis/report) compute it in SQL.
//
// Sources: SPEAR, rStar2-Agent, ARLArena, AEPO and PRS/VSPO, by figure or equation in each file.
// Degenerate input gives zeros, never NaN, except for the bootstrap of no units. A number that is not finite or
// greater than 1e150, unequal lengths, or a mask other than 0 and 1 give an error that wraps ErrBadInput and names
// the row and the token. Nothing is added in that case.
package diagnose
