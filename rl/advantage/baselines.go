package advantage

import (
	"cmp"
	"fmt"
	"slices"
)

// SPEAR's baseline queue D_R (Qin et al. 2025, section 4.1): one mean reward for each (step, group). The latest
// ones are kept,
//
//	push the step's means, then pop the oldest while |D_R| > N_DR
//
// Departures: the paper counts trajectories ("the latest N_DR"); the code counts groups, as here. The code
// pops whole steps before it pushes; call TrimSteps before Push for that.

// Baseline is the mean reward of one group at one step.
type Baseline struct {
	Step  int
	Group string
	Mean  float64
}

// GroupMeans returns each group's baseline, by group name: the mean over trajectories of the mean
// over the trajectory's rows.
func GroupMeans(step int, rows []Row, rewards []float64) ([]Baseline, error) {
	if len(rows) != len(rewards) {
		return nil, fmt.Errorf("average groups: %d rewards for %d rows", len(rewards), len(rows))
	}
	for i, r := range rewards {
		if !finite(r) {
			return nil, fmt.Errorf("average groups: reward of row %d (%v) is %g", i, rows[i], r)
		}
	}
	o, err := canonical(len(rows), func(i int) Row { return rows[i] })
	if err != nil {
		return nil, fmt.Errorf("average groups: %w", err)
	}
	var out []Baseline
	var scratch []float64
	for g := range len(o.groups) - 1 {
		var means []float64
		for k := o.groups[g]; k < o.groups[g+1]; k++ {
			scratch = gather(scratch, rewards, o.trajectory(k))
			mean, _ := sortedMoments(scratch)
			means = append(means, mean)
		}
		mean, _ := sortedMoments(means)
		out = append(out, Baseline{Step: step, Group: rows[o.group(g)[0]].Group, Mean: mean})
	}
	return out, nil
}

// BaselineQueue is D_R, oldest first. It is a plain value: its methods return a new queue.
type BaselineQueue []Baseline

// Push appends the baselines of a step, sorted by group name. A mean that is not finite, a step before the
// queue's last one, or a group that the step already has is an error.
func (q BaselineQueue) Push(baselines ...Baseline) (BaselineQueue, error) {
	added := slices.SortedFunc(slices.Values(baselines), func(a, b Baseline) int {
		return cmp.Or(cmp.Compare(a.Step, b.Step), cmp.Compare(a.Group, b.Group))
	})
	seen := map[string]bool{}
	for _, b := range q {
		if len(q) > 0 && b.Step == q[len(q)-1].Step {
			seen[b.Group] = true
		}
	}
	out := slices.Clip(slices.Clone(q))
	for _, b := range added {
		if !finite(b.Mean) {
			return nil, fmt.Errorf("push baseline: mean of group %s at step %d is %g", b.Group, b.Step, b.Mean)
		}
		if n := len(out); n > 0 && out[n-1].Step != b.Step {
			if b.Step < out[n-1].Step {
				return nil, fmt.Errorf("push baseline: step %d comes after step %d", b.Step, out[n-1].Step)
			}
			clear(seen)
		}
		if seen[b.Group] {
			return nil, fmt.Errorf("push baseline: group %s occurs twice at step %d", b.Group, b.Step)
		}
		seen[b.Group] = true
		out = append(out, b)
	}
	return out, nil
}

// Trim drops the oldest baselines beyond capacity. This is the paper's rule; call it after Push.
func (q BaselineQueue) Trim(capacity int) BaselineQueue {
	return slices.Clone(q[max(0, len(q)-max(0, capacity)):])
}

// TrimSteps drops whole steps, oldest first, while there are more baselines than capacity. This is the rule of
// the release; call it before Push, so the queue may exceed capacity by one step.
func (q BaselineQueue) TrimSteps(capacity int) BaselineQueue {
	from := 0
	for len(q)-from > max(0, capacity) {
		for step := q[from].Step; from < len(q) && q[from].Step == step; {
			from++
		}
	}
	return slices.Clone(q[from:])
}

// P50 returns the median of the baselines, with linear interpolation, and false for an empty queue.
func (q BaselineQueue) P50() (float64, bool) {
	if len(q) == 0 {
		return 0, false
	}
	means := make([]float64, len(q))
	for i, b := range q {
		means[i] = b.Mean
	}
	slices.Sort(means)
	low, high := means[(len(means)-1)/2], means[len(means)/2]
	return low + (high-low)*0.5, true
}
