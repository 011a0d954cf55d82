package diagnose

// How tree rollouts spend their branches (AEPO figures 3 left and 7 left): how many of a prompt's trajectories receive
// any, and the lengths of runs of consecutive tool-call turns that branch. A rollout that collapses gives nearly all
// branches to 1–3 trajectories of a prompt. Departures: none; the paper gives no formula, only the plots.

import (
	"fmt"
	"slices"
)

// Chain is one trajectory as branching sees it.
type Chain struct {
	Prompt string
	// Children holds, for each tool-call turn of the chain in order, how many branches were
	// opened there. A child's own turns begin where it left its parent.
	Children []int
}

// Branches gathers the branches of a step.
type Branches struct {
	chains, branched, branches int
	runs                       histogram
	prompts                    map[string]int // chains that receive branches
	turns, inRuns              int
}

// BranchReport holds the distributions.
type BranchReport struct {
	Chains, Branches int
	Branched         float64 // share of chains that receive branches
	Spread           []Bin   // chains of a prompt that receive branches
	Runs             []Bin   // lengths of maximal runs of branching turns
	Consecutive      float64 // share of branching turns that are in runs of 2 or more
}

// Add adds chains. If one is refused, none is added.
func (b *Branches) Add(chains ...Chain) error {
	for i, c := range chains {
		if err := checkCounts("chain", i, c.Children...); err != nil {
			return fmt.Errorf("prompt %s: %w", c.Prompt, err)
		}
	}
	for _, c := range chains {
		b.add(c)
	}
	return nil
}

func (b *Branches) add(c Chain) {
	branches, run := 0, 0
	for _, n := range append(slices.Clone(c.Children), 0) { // the 0 ends the last run
		branches += n
		if n > 0 {
			run++
			continue
		}
		b.endRun(run)
		run = 0
	}
	b.chains++
	b.branches += branches
	if b.prompts == nil {
		b.prompts = map[string]int{}
	}
	b.prompts[c.Prompt] += min(branches, 1)
	b.branched += min(branches, 1)
}

func (b *Branches) endRun(length int) {
	if length == 0 {
		return
	}
	b.runs.add(length, 1)
	b.turns += length
	if length > 1 {
		b.inRuns += length
	}
}

// Report returns the distributions.
func (b *Branches) Report() BranchReport {
	var spread histogram
	for _, chains := range b.prompts {
		spread.add(chains, 1)
	}
	return BranchReport{
		Chains: b.chains, Branches: b.branches, Branched: share(b.branched, b.chains),
		Spread: spread.bins(), Runs: b.runs.bins(), Consecutive: share(b.inRuns, b.turns),
	}
}
