package diagnose

// Rewards by group: mean, sample standard deviation (n−1) and maximum of each group, as means over
// groups, and the deviation of the groups that a filter kept (SPEAR and RAGEN keep the most
// varied; RoC keeps part of each group). Departures: none.

import "fmt"

// GroupReward is one group's rewards.
type GroupReward struct {
	Rewards []float64 // of every sample with a reward
	Kept    []float64 // of the samples that enter the update; empty where the group was dropped
}

// GroupRewards gathers a step's groups.
type GroupRewards struct {
	rewards                 series
	mean, deviation, most   series // of each group
	keptMean, keptDeviation series // of each kept group
}

// GroupRewardReport holds them.
type GroupRewardReport struct {
	Groups, KeptGroups int
	Reward             Spread  // over samples
	Mean               Spread  // of the groups' means
	Deviation          Spread  // of the groups' deviations
	Max                Spread  // of the groups' maxima
	KeptMean           Spread  // of the means of what was kept
	KeptDeviation      Spread  // of the deviations of what was kept
	Kept               float64 // share of groups
}

// Add adds groups; one without rewards is not counted. If one is refused, none is added.
func (g *GroupRewards) Add(groups ...GroupReward) error {
	for i, group := range groups {
		if err := checkValues("reward", group.Rewards); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
		if err := checkValues("kept reward", group.Kept); err != nil {
			return fmt.Errorf("group %d: %w", i, err)
		}
	}
	for _, group := range groups {
		if len(group.Rewards) == 0 {
			continue
		}
		all := spreadOf(group.Rewards)
		for _, r := range group.Rewards {
			g.rewards.add(r)
		}
		g.mean.add(all.Mean)
		g.deviation.add(all.Deviation)
		g.most.add(all.Max)
		if len(group.Kept) > 0 {
			kept := spreadOf(group.Kept)
			g.keptMean.add(kept.Mean)
			g.keptDeviation.add(kept.Deviation)
		}
	}
	return nil
}

// Merge adds another shard's groups.
func (g *GroupRewards) Merge(o *GroupRewards) {
	g.rewards.merge(&o.rewards)
	g.mean.merge(&o.mean)
	g.deviation.merge(&o.deviation)
	g.most.merge(&o.most)
	g.keptMean.merge(&o.keptMean)
	g.keptDeviation.merge(&o.keptDeviation)
}

// Report returns the spreads.
func (g *GroupRewards) Report() GroupRewardReport {
	return GroupRewardReport{
		Groups: g.mean.N, KeptGroups: g.keptMean.N,
		Reward: g.rewards.spread(), Mean: g.mean.spread(), Deviation: g.deviation.spread(), Max: g.most.spread(),
		KeptMean: g.keptMean.spread(), KeptDeviation: g.keptDeviation.spread(),
		Kept: share(g.keptMean.N, g.mean.N),
	}
}
