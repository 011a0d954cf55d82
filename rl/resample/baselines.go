package resample

import (
	"cmp"
	"slices"
)

// Baseline is how well one group did: its mean reward.
type Baseline struct {
	Step    int
	GroupID string
	Mean    float64
}

// Baselines is SPEAR's queue D_R of group means, oldest first: what the policy has been earning of
// late. Its 50th percentile stands in for the group mean when old rows are judged anew (eq 7).
//
// Departure: the paper counts N_DR in trajectories; the entries are groups, as in the release.
type Baselines []Baseline

// P50 is the median of the queue by linear interpolation; ok is false of an empty queue.
func (b Baselines) P50() (median float64, ok bool) {
	values := make([]float64, len(b))
	for i, e := range b {
		values[i] = e.Mean
	}
	return Median(values)
}

// Median is the 50th percentile of values by linear interpolation; ok is false of none.
func Median(values []float64) (median float64, ok bool) {
	if len(values) == 0 {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(values))
	low, high := sorted[(len(sorted)-1)/2], sorted[len(sorted)/2]
	return low + (high-low)/2, true
}

// push appends the step's means, then pops the oldest over the capacity (the paper's order).
func (b Baselines) push(means []Baseline, capacity int) Baselines {
	all := slices.Concat(b, means)
	return all[max(0, len(all)-capacity):]
}

// pushRelease pops whole steps while the queue is over the capacity, then appends; the queue may
// exceed the capacity by one step's groups until the next push.
func (b Baselines) pushRelease(means []Baseline, capacity int) Baselines {
	rest := b
	for len(rest) > capacity {
		oldest := rest[0].Step
		for len(rest) > 0 && rest[0].Step == oldest {
			rest = rest[1:]
		}
	}
	return slices.Concat(rest, means)
}

// groupMeans returns the baseline of each group of sorted rows: the mean over its trajectories of
// the mean reward of the trajectory's rows, so that long trajectories weigh no more than short ones.
func groupMeans(step int, rows []ReplayRow) []Baseline {
	var out []Baseline
	for i := 0; i < len(rows); {
		group := rows[i].GroupID
		var means []float64
		for i < len(rows) && rows[i].GroupID == group {
			trajectory := rows[i].TrajectoryID
			var rewards []float64
			for ; i < len(rows) && rows[i].GroupID == group && rows[i].TrajectoryID == trajectory; i++ {
				rewards = append(rewards, rows[i].Reward)
			}
			means = append(means, meanOf(rewards))
		}
		out = append(out, Baseline{Step: step, GroupID: group, Mean: meanOf(means)})
	}
	return out
}

// meanOf sums in sorted order, so that no bit depends on the order of the rows.
func meanOf(values []float64) float64 {
	slices.SortFunc(values, cmp.Compare[float64])
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}
