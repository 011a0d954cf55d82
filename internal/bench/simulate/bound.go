package main

import (
	"math"
	"slices"
)

// bound is a makespan that no schedule can beat: the work of all rollouts over the engines that are there, as if enough
// rollouts were always there to fill them, or the longest rollout alone on the fastest engine.
//
// The work of a token at position x is row + context·x and its part of the step's base, which is divided among the rows
// of its step, and among the tokens that they hold. For n rows at most, G tokens in all and contexts X in all:
//
//	engines · T ≥ max(base·G/n, base·X/tokens) + row·G + context·X + prefixes/prefill
//
// If engines differ, each constant is that of the best engine, and an engine's speed is that of the kind of work at
// which it comes nearest to the best one. Engines work at their speeds, and not while they are lost.
func bound(j *job) float64 {
	best := j.engines[0]
	for _, m := range j.engines[1:] {
		best.tokens, best.rows, best.prefill = max(best.tokens, m.tokens), max(best.rows, m.rows),
			max(best.prefill, m.prefill)
		best.base, best.row, best.context = min(best.base, m.base), min(best.row, m.row), min(best.context, m.context)
	}
	var tokens, contexts, prefixes, longest float64
	for i := range j.rollouts {
		x, alone := float64(j.rollouts[i].prompt), 0.0
		prefixes += x
		for k, t := range j.rollouts[i].turns {
			g, result := float64(t.tokens), float64(t.result)
			alone += best.seconds(g, 1, x)
			tokens += g
			contexts += g*x + g*g/2
			x += g + result
			if k+1 < len(j.rollouts[i].turns) {
				prefixes += result
				alone += result/best.prefill + float64(t.tool)
			}
		}
		longest = max(longest, alone+float64(j.rollouts[i].prompt)/best.prefill)
	}
	base := best.base * max(tokens/float64(min(best.rows, len(j.rollouts))), contexts/float64(best.tokens))
	work := base + tokens*best.row + contexts*best.context + prefixes/best.prefill
	return max(longest, workedOff(j, &best, work))
}

// workedOff is the time at which the engines could have done the work, given their failures.
func workedOff(j *job, best *model, work float64) float64 {
	own := make([]float64, len(j.engines)) // speeds, relative to the best engine
	for i, m := range j.engines {
		own[i] = m.prefill / best.prefill
		for _, x := range [][2]float64{{best.base, m.base}, {best.row, m.row}, {best.context, m.context}} {
			if x[0] > 0 { // else it is no work for the best engine
				own[i] = max(own[i], x[0]/x[1])
			}
		}
	}
	speeds, now := slices.Clone(own), 0.0
	for fails := j.failures; ; fails = fails[1:] {
		rate, end := 0.0, math.Inf(1)
		for _, s := range speeds {
			rate += s
		}
		if rate > 0 {
			end = now + work/rate
		}
		if len(fails) == 0 || fails[0].at >= end {
			return end
		}
		work -= rate * (fails[0].at - now)
		now = fails[0].at
		speeds[fails[0].engine] = own[fails[0].engine] * fails[0].speed
	}
}
