package diagnose

// Tasks without a gradient (PRS/VSPO figure 4): the share of groups whose rewards have a population variance below
// 1e-6, so that every advantage is 0. They are split into tasks that the policy always solves and tasks that it never
// solves. Departures: the split uses the group's mean reward.

import (
	"fmt"

	"github.com/ropewalk/ropewalk/rl/choice"
	"github.com/ropewalk/ropewalk/rl/internal/exact"
)

// DefaultMinVariance is the variance below which a group counts as one without advantage.
const DefaultMinVariance = 1e-6

// ZeroAdvantage counts groups without advantage. The zero value uses DefaultMinVariance and takes a
// reward > 0 as solved.
type ZeroAdvantage struct {
	MinVariance float64 `min:"0"` // ≥ 0; DefaultMinVariance when 0
	SolvedAbove float64 // a group of mean reward above this is solved

	groups, all, none int
}

// ZeroAdvantageReport holds the shares of groups; all are 0 without groups.
type ZeroAdvantageReport struct {
	Groups    int
	Fraction  float64 // SolveAll + SolveNone
	SolveAll  float64 // every sample solves the task
	SolveNone float64 // none does
}

// Validate reports the first bad field.
func (z *ZeroAdvantage) Validate() error { return choice.Check("", *z) }

// Add adds groups of rewards; one without rewards is not counted, one with a single reward is
// without advantage. If one is refused, none is added.
func (z *ZeroAdvantage) Add(groups ...[]float64) error {
	if err := z.Validate(); err != nil {
		return err
	}
	for i, rewards := range groups {
		if err := checkValues("reward", rewards); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	least := z.MinVariance
	if least == 0 {
		least = DefaultMinVariance
	}
	for _, rewards := range groups {
		var m exact.Moments
		for _, r := range rewards {
			m.Add(r)
		}
		if m.N > 0 {
			z.groups++
		}
		switch {
		case m.N == 0 || m.Variance() >= least:
		case m.Mean() > z.SolvedAbove:
			z.all++
		default:
			z.none++
		}
	}
	return nil
}

// Report returns the shares.
func (z *ZeroAdvantage) Report() ZeroAdvantageReport {
	return ZeroAdvantageReport{
		Groups:    z.groups,
		Fraction:  share(z.all+z.none, z.groups),
		SolveAll:  share(z.all, z.groups),
		SolveNone: share(z.none, z.groups),
	}
}
