package simulate

import (
	"math"
	"slices"
)

// Bound is a makespan that no schedule can beat: the work of all rollouts over the engines that are there, and the
// longest rollout alone on the fastest engine.
//
// The work of a token at position x is row + context·x and its part of the step's base. The base is divided among the
// rows of its step, and among the tokens that they hold. How many rows may a step have? More rows make fewer steps, but
// every rollout then waits longer for each of its tokens, and all rollouts together have only N·T seconds. For a mean
// of n rows, G tokens in all, contexts X in all, and tool calls of C seconds in all:
//
//	engines · T ≥ max(base·G/n, base·X/kv_tokens) + row·G + context·X + prefixes/prefill
//	N · T ≥ (base + row·n)·G + C
//
// The bound is the least T over all n up to the engine's rows and N (the second line: Σn² over the steps is at least
// n·G). If engines differ, each constant is that of the best engine, and an engine's speed is that of the kind of work
// at which it comes nearest to the best one. Engines work at their speeds, and not while they are lost.
type Bound struct {
	Work    float64 `json:"work_seconds"`    // of all rollouts over all engines
	Longest float64 `json:"longest_seconds"` // rollout
	// Engines is the first line alone, at the best engine's greatest number of rows: the work of the engines, as if
	// enough rollouts were always there to fill them.
	Engines float64 `json:"engines_seconds"`
}

// Seconds is the greater of both.
func (b Bound) Seconds() float64 { return max(b.Work, b.Longest) }

// Simple is max(work ÷ engines, longest rollout), which is lower.
func (b Bound) Simple() float64 { return max(b.Engines, b.Longest) }

// BoundOf computes the bound of a job.
func BoundOf(job *Job) Bound {
	best := job.Engines[0]
	best.Speed = fastest(best)
	relative := make([]float64, len(job.Engines))
	for _, m := range job.Engines[1:] {
		best.Tokens, best.Rows = max(best.Tokens, m.Tokens), max(best.Rows, m.Rows)
		best.Base, best.Row, best.Context = min(best.Base, m.Base), min(best.Row, m.Row), min(best.Context, m.Context)
		best.Prefill, best.Speed = max(best.Prefill, m.Prefill), max(best.Speed, fastest(m))
	}
	for i, m := range job.Engines {
		relative[i] = fastest(m) / leastRatio([]float64{m.Base, m.Row, m.Context, best.Prefill},
			[]float64{best.Base, best.Row, best.Context, m.Prefill})
	}
	sum := totals{speeds: relative}
	for i := range job.Rollouts {
		sum.add(job, &job.Rollouts[i], &best)
	}
	work, engines := sum.work(job, &best)
	return Bound{Work: work, Engines: engines, Longest: sum.longest}
}

// totals are the sums over all rollouts.
type totals struct {
	tokens, contexts, prefix, calls, longest float64
	speeds                                   []float64 // of the engines, relative to the best engine's constants
}

// leastRatio is how many times as long as the best engine an engine takes for any kind of work, at least.
func leastRatio(own, best []float64) float64 {
	least := math.Inf(1)
	for k := range own {
		if best[k] > 0 {
			least = min(least, own[k]/best[k])
		}
	}
	return least
}

func (t *totals) add(job *Job, r *Rollout, best *Model) {
	x, alone, calls := float64(r.Prompt), float64(r.Prompt)/best.Prefill, 0.0
	t.prefix += x
	for k, turn := range r.Turns {
		g, result := float64(turn.Tokens), float64(turn.Result)
		alone += best.seconds(g, 1, x)
		t.tokens += g
		t.contexts += g*x + g*g/2
		x += g + result
		if k+1 < len(r.Turns) {
			t.prefix += result
			alone += result / best.Prefill
			t.calls += delay(job, float64(turn.Tool))
		}
		calls += delay(job, float64(turn.Tool))
	}
	t.longest = max(t.longest, alone/best.Speed+calls)
}

// work is the least time over all numbers of rows. The first line falls with their number and the second rises, so the
// least maximum is where they meet. It also returns the first line alone.
func (t *totals) work(job *Job, best *Model) (least, alone float64) {
	engines := func(n float64) float64 {
		base := best.Base * max(t.tokens/n, t.contexts/float64(best.Tokens))
		return t.workedOff(job, base+t.tokens*best.Row+t.contexts*best.Context+t.prefix/best.Prefill)
	}
	rollouts := func(n float64) float64 {
		return ((best.Base+best.Row*n)*t.tokens/best.Speed + t.calls) / float64(len(job.Rollouts))
	}
	low, high := 1.0, float64(min(best.Rows, len(job.Rollouts)))
	alone = engines(high)
	for range 50 {
		if n := (low + high) / 2; engines(n) > rollouts(n) {
			low = n
		} else {
			high = n
		}
	}
	return max(min(engines(low), engines(high)), rollouts(low)), alone
}

func fastest(m Model) float64 {
	if m.Speed == 0 {
		return 1
	}
	return m.Speed
}

// delay is the least time of a call.
func delay(job *Job, tool float64) float64 {
	if job.Tools.Senders > 0 && tool > 0 {
		return tool + job.Tools.Send
	}
	return tool
}

// workedOff is the time at which the engines could have done the work, given their failures.
func (t *totals) workedOff(job *Job, work float64) float64 {
	speeds := slices.Clone(t.speeds)
	total := func() (sum float64) {
		for _, s := range speeds {
			sum += s
		}
		return sum
	}
	now := 0.0
	fails := slices.Clone(job.Failures)
	for {
		rate := total()
		end := math.Inf(1)
		if rate > 0 {
			end = now + work/rate
		}
		if len(fails) == 0 || fails[0].At >= end {
			return end
		}
		x := fails[0]
		fails = fails[1:]
		work -= rate * (x.At - now)
		now = x.At
		switch x.Event {
		case eventLost:
			speeds[x.Engine] = 0
		case eventJoined:
			speeds[x.Engine] = t.speeds[x.Engine]
		case eventSlow:
			if speeds[x.Engine] > 0 {
				speeds[x.Engine] = t.speeds[x.Engine] / x.Factor
			}
		}
	}
}
