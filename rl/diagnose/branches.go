package diagnose

// How tree rollouts spend their branches (AEPO figures 3 left and 7 left): branches per trajectory
// and per prompt, how many of a prompt's trajectories receive any, and the lengths of runs of
// consecutive tool-call turns that branch. A rollout that collapses gives nearly all branches to
// 1–3 trajectories of a prompt. Departures: none; the paper gives no formula, only the plots.

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
	chains, branched int
	perChain, runs   histogram
	prompts          map[string]*promptBranches
	turns, inRuns    int
}

type promptBranches struct{ branches, chains int }

// BranchReport holds the distributions.
type BranchReport struct {
	Chains, Prompts, Branches int
	Branched                  float64 // share of chains that receive branches
	PerTrajectory             []Bin   // branches of a chain
	PerPrompt                 []Bin   // branches of a prompt, over its chains
	Spread                    []Bin   // chains of a prompt that receive branches
	Runs                      []Bin   // lengths of maximal runs of branching turns
	Consecutive               float64 // share of branching turns that lie in runs of 2 or more
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
	b.perChain.add(branches, 1)
	p := b.prompt(c.Prompt)
	p.branches += branches
	if branches > 0 {
		b.branched++
		p.chains++
	}
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

func (b *Branches) prompt(name string) *promptBranches {
	if b.prompts == nil {
		b.prompts = map[string]*promptBranches{}
	}
	if b.prompts[name] == nil {
		b.prompts[name] = &promptBranches{}
	}
	return b.prompts[name]
}

// Merge adds another shard's chains; a prompt's chains may lie in several shards.
func (b *Branches) Merge(o *Branches) {
	b.chains += o.chains
	b.branched += o.branched
	b.turns += o.turns
	b.inRuns += o.inRuns
	b.perChain.merge(o.perChain)
	b.runs.merge(o.runs)
	for name, theirs := range o.prompts {
		p := b.prompt(name)
		p.branches += theirs.branches
		p.chains += theirs.chains
	}
}

// Report returns the distributions.
func (b *Branches) Report() BranchReport {
	var perPrompt, spread histogram
	for _, p := range b.prompts {
		perPrompt.add(p.branches, 1)
		spread.add(p.chains, 1)
	}
	_, branches := b.perChain.total()
	return BranchReport{
		Chains: b.chains, Prompts: len(b.prompts), Branches: branches,
		Branched:      share(b.branched, b.chains),
		PerTrajectory: b.perChain.bins(),
		PerPrompt:     perPrompt.bins(),
		Spread:        spread.bins(),
		Runs:          b.runs.bins(),
		Consecutive:   share(b.inRuns, b.turns),
	}
}
