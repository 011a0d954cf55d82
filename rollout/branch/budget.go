package branch

import (
	"fmt"
	"math"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Rounding chooses how a real number of roots becomes a whole one.
type Rounding string

// HalfUp rounds half up and clamps to [1, k]; Floor1 (the release) takes int(m) + 1 and clamps to the same range.
const (
	HalfUp Rounding = "half_up"
	Floor1 Rounding = "floor_plus_1"
)

// Budget splits a number of leaves between roots and branches. One trajectory is rolled out before the split, and
// its entropies decide:
//
//	m = k·σ(β(H_root − H̄_tool))
//
// Source: AEPO eq 5 (entropy pre-monitoring); β is 0.2 in the paper's settings and 0.5 in its release, where
// the monitoring is off. The paper does not say how to round. The monitored trajectory counts as the first
// root.
type Budget struct {
	Total       int      `min:"1"` // k
	Sensitivity float64  // β
	Rounding    Rounding `enum:"half_up|floor_plus_1"`
	// KeepBranch leaves at least one leaf for a branch: m ≤ k − 1. It needs k ≥ 2.
	KeepBranch bool
}

// DefaultBudget holds the paper's constants.
var DefaultBudget = Budget{Total: 16, Sensitivity: 0.2, Rounding: HalfUp}

// Validate reports the first bad field.
func (b Budget) Validate() error {
	if b.KeepBranch && b.Total < 2 {
		return fmt.Errorf("budget.total must be ≥ 2 to keep a branch, got %d", b.Total)
	}
	return choice.Check("budget.", b)
}

// Real is m before it is rounded, from the entropy at the root and the mean entropy after tools.
func (b Budget) Real(root, tool float64) float64 {
	return float64(b.Total) / (1 + math.Exp(-b.Sensitivity*(root-tool)))
}

// Split returns the number of roots and the number of branches. They add up to Total.
func (b Budget) Split(root, tool float64) (roots, branches int, err error) {
	if err := b.Validate(); err != nil {
		return 0, 0, err
	}
	m := b.Real(root, tool)
	if math.IsNaN(m) {
		return 0, 0, fmt.Errorf("split a budget: entropies %g at the root and %g after tools", root, tool)
	}
	roots = int(math.Floor(m + 0.5))
	if b.Rounding == Floor1 {
		roots = int(m) + 1
	}
	most := b.Total
	if b.KeepBranch {
		most--
	}
	roots = min(max(roots, 1), most)
	return roots, b.Total - roots, nil
}

// ToolAverage returns H̄_tool, the mean entropy after the tool results of the monitored trajectory. With withRoot
// it includes the first segment, as the release does. ok is false if there is nothing to average: a trajectory
// without tool calls says nothing about branching.
func ToolAverage(root float64, steps []float64, withRoot bool) (average float64, ok bool) {
	sum, n := 0.0, len(steps)
	for _, h := range steps {
		sum += h
	}
	if withRoot {
		sum, n = sum+root, n+1
	}
	if n == 0 {
		return 0, false
	}
	return sum / float64(n), true
}
