package diagnose

// pass@k, the chance that at least one of k samples solves a task, from c of n samples that did:
//
//	pass@k = 1 − C(n−c, k)/C(n, k)
//
// (Chen et al. 2021, the unbiased estimate); avg@n is the mean score of n samples. Both are means
// over tasks. Departures: computed as −expm1(Σ ln(1 − max(c,k)/(n−i))) over i < min(c,k), which
// equals the fraction since it is symmetric in c and k, overflows for no n and keeps its relative
// precision where the chance is tiny.

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// PassAtK returns the estimate for one task with c of n samples solved, 1 ≤ k ≤ n.
func PassAtK(n, c, k int) (float64, error) {
	switch {
	case n < 1 || c < 0 || c > n:
		return 0, fmt.Errorf("%w: pass@k of %d solved of %d samples", ErrBadInput, c, n)
	case k < 1 || k > n:
		return 0, fmt.Errorf("%w: pass@%d of %d samples", ErrBadInput, k, n)
	case n-c < k:
		return 1, nil
	}
	logs, most := 0.0, float64(max(c, k))
	for i := range min(c, k) {
		logs += math.Log1p(-most / float64(n-i))
	}
	return max(0, -math.Expm1(logs)), nil // not −0 where nothing was solved
}

// Solved gathers the samples of tasks.
type Solved struct {
	tasks    map[[2]int]int // by (n, c)
	averages exact.Sum      // of each task's mean score
	scores   exact.Sum
}

// SolvedReport holds what does not depend on k; all of it is 0 without tasks.
type SolvedReport struct {
	Tasks, Samples, Successes int
	SuccessRate               float64 // of the samples
	Score                     float64 // mean over samples
	AvgAtN                    float64 // mean over tasks of the mean score of a task's samples
	N                         int     // the least number of samples of any task
}

// Add adds a task by the score of each of its samples and whether it counts as solved. A task
// without samples is not counted.
func (s *Solved) Add(scores []float64, solved []bool) error {
	if len(scores) != len(solved) {
		return fmt.Errorf("%w: %d scores and %d verdicts", ErrBadInput, len(scores), len(solved))
	}
	if err := checkValues("score", scores); err != nil || len(scores) == 0 {
		return err
	}
	var sum exact.Sum
	c := 0
	for i, v := range scores {
		sum.Add(v)
		if solved[i] {
			c++
		}
	}
	if s.tasks == nil {
		s.tasks = map[[2]int]int{}
	}
	s.tasks[[2]int{len(scores), c}]++
	s.averages.Add(over(sum.Value(), len(scores)))
	s.scores.Merge(&sum)
	return nil
}

// Merge adds another shard's tasks.
func (s *Solved) Merge(o *Solved) {
	if s.tasks == nil {
		s.tasks = map[[2]int]int{}
	}
	for task, times := range o.tasks { // sums do not depend on the order
		s.tasks[task] += times
	}
	s.averages.Merge(&o.averages)
	s.scores.Merge(&o.scores)
}

// Report returns success rate, score and avg@n.
func (s *Solved) Report() SolvedReport {
	var out SolvedReport
	for task, times := range s.tasks {
		n := task[0]
		if out.Tasks == 0 || n < out.N {
			out.N = n
		}
		out.Tasks += times
		out.Samples += n * times
		out.Successes += task[1] * times
	}
	out.SuccessRate = share(out.Successes, out.Samples)
	out.Score = over(s.scores.Value(), out.Samples)
	out.AvgAtN = over(s.averages.Value(), out.Tasks)
	return out
}

// PassAtK returns the mean over tasks, 0 without any; every task needs k samples.
func (s *Solved) PassAtK(k int) (float64, error) {
	if n := s.Report().N; len(s.tasks) > 0 && k > n {
		return 0, fmt.Errorf("%w: pass@%d of tasks with %d samples", ErrBadInput, k, n)
	}
	var sum exact.Sum
	tasks := 0
	for task, times := range s.tasks {
		p, err := PassAtK(task[0], task[1], k)
		if err != nil {
			return 0, err
		}
		for range times {
			sum.Add(p)
		}
		tasks += times
	}
	return over(sum.Value(), tasks), nil
}
