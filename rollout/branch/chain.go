package branch

import (
	"cmp"
	"fmt"
	"math"
)

// StreakRule chooses when a chain's streak grows.
type StreakRule string

// StreakBranches: a branch adds 1, anything else resets the streak to 0 (the paper's text). StreakPasses: a
// rising entropy that did not branch adds 1, and nothing lowers the streak (Algorithm 1 as printed).
const (
	StreakBranches StreakRule = "branches"
	StreakPasses   StreakRule = "passes"
)

// Chain is the state of one path. A branch starts with a copy of its parent's chain after the decision.
type Chain struct {
	Root   float64 // entropy of the first segment, in nats
	Streak int     // l
}

// Decision is what happens to a chain after a tool result.
type Decision struct {
	Change      float64 // ΔH
	Base        float64
	Probability float64 // P; 0 if the budget was already spent
	Copies      int     // branches to open, 0 to continue alone
}

// Decide decides whether a chain branches before its next segment, whose entropy is h nats. budget is b, the
// number of branches left; at 0 the chain does not branch, nothing is drawn and the streak ends. draw returns
// uniform numbers in [0, 1); it is not called if the base is fixed.
//
// Departure: the release counts streaks by prompt, and only in rounds in which some prompt branched. Here each
// chain has its own streak.
func (r Rule) Decide(k TopK, c Chain, h float64, budget int, draw func() float64) (Decision, Chain, error) {
	if err := finite(h, c); err != nil {
		return Decision{}, c, err
	}
	d := Decision{Change: k.Change(h, c.Root)}
	if budget > 0 {
		if r.FixedBase != nil {
			d.Base = *r.FixedBase
		} else {
			d.Base = draw()
		}
		d.Probability = r.Probability(d.Base, d.Change, c.Streak)
		if r.Branches(d.Probability) {
			d.Copies = min(cmp.Or(r.Copies, 1), budget)
		}
	}
	c.Streak = r.Streak.next(c.Streak, d)
	return d, c, nil
}

// Decider is a rule that decides whether a chain branches: Rule or ARPO.
type Decider interface {
	// Decide decides whether a chain branches before a segment of entropy h; see Rule.Decide.
	Decide(k TopK, c Chain, h float64, budget int, draw func() float64) (Decision, Chain, error)
	// Validate reports the first bad field.
	Validate() error
}

// Decide decides whether a chain branches before its next segment, as Rule.Decide does. The streak has no influence; it
// is counted for reports.
func (a ARPO) Decide(k TopK, c Chain, h float64, budget int, draw func() float64) (Decision, Chain, error) {
	if err := finite(h, c); err != nil {
		return Decision{}, c, err
	}
	d := Decision{Change: k.Change(h, c.Root)}
	if budget > 0 {
		d.Base = draw()
		d.Probability = a.Probability(d.Base, d.Change)
		if a.Branches(d.Probability) {
			d.Copies = min(cmp.Or(a.Copies, 1), budget)
		}
	}
	c.Streak = StreakBranches.next(c.Streak, d)
	return d, c, nil
}

// finite refuses entropies that are not numbers.
func finite(h float64, c Chain) error {
	if math.IsNaN(h) || math.IsInf(h, 0) || math.IsNaN(c.Root) || math.IsInf(c.Root, 0) {
		return fmt.Errorf("decide a branch: entropy %g after %g at the root", h, c.Root)
	}
	return nil
}

// next is the streak after a decision.
func (s StreakRule) next(streak int, d Decision) int {
	branched := d.Copies > 0
	switch {
	case s == StreakPasses && !branched && d.Change > 0:
		return streak + 1
	case s == StreakPasses:
		return streak
	case branched:
		return streak + 1
	}
	return 0
}
