package simulate

// bound is a makespan that no schedule can beat: the work of all rollouts over the engines, as if enough rollouts were
// always there to fill them, or the longest rollout alone on an engine.
//
// The work of a token at position x is row + context·x and its part of the step's base, which is divided among the rows
// of its step, and among the tokens that they hold. For n rows at most, G tokens in all and contexts X in all:
//
//	engines · T ≥ max(base·G/n, base·X/tokens) + row·G + context·X + prefixes/prefill
func bound(j *job) float64 {
	m := j.engine
	var tokens, contexts, prefixes, longest float64
	for i := range j.rollouts {
		x, alone := float64(j.rollouts[i].prompt), 0.0
		prefixes += x
		for k, t := range j.rollouts[i].turns {
			g, result := float64(t.tokens), float64(t.result)
			alone += m.seconds(g, 1, x)
			tokens += g
			contexts += g*x + g*g/2
			x += g + result
			if k+1 < len(j.rollouts[i].turns) {
				prefixes += result
				alone += result/m.prefill + float64(t.tool)
			}
		}
		longest = max(longest, alone+float64(j.rollouts[i].prompt)/m.prefill)
	}
	base := m.base * max(tokens/float64(min(m.rows, len(j.rollouts))), contexts/float64(m.tokens))
	work := base + tokens*m.row + contexts*m.context + prefixes/m.prefill
	return max(longest, work/float64(j.engines))
}
