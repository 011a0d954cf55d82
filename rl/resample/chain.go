package resample

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// Link is one step of a chain: Rounds, OneVersion, RejectEqual, LowVariance, ValueResampling, RoC or Mask, each a plain
// struct of its settings.
type Link interface {
	// Validate reports the first bad field.
	Validate() error
	// name is what people call the link.
	name() string
	// draws reports that the link needs random streams.
	draws() bool
	// apply drops, masks or weighs rows. It sees exactly the rows that the links before it left.
	apply(*step)
}

// Chain runs links in order. Excluded rows and short groups are dropped before the first link. A group takes part
// in a link as long as it has a row left. The link's statistics run over the rewards of the rows that are left,
// masked ones included. An empty chain keeps every row that has a reward.
type Chain struct {
	Links  []Link
	Source Source // may be nil where no link draws
}

// Validate reports the first bad field, and a second link of a kind that a chain may hold only once.
func (c Chain) Validate() error {
	vspo, roc := 0, 0
	for i, l := range c.Links {
		if l == nil {
			return fmt.Errorf("a chain must not hold a nil link")
		}
		if _, dynamic := l.(Rounds); dynamic && i > 0 {
			return fmt.Errorf("dynamic sampling needs all groups that were sampled, so it must be the first link")
		}
		if err := l.Validate(); err != nil {
			return err
		}
		switch l.(type) {
		case ValueResampling:
			vspo++
		case RoC:
			roc++
		}
	}
	if vspo > 1 {
		return fmt.Errorf(
			"a chain resamples by value at most once: the second draw would overwrite the counts of the first",
		)
	}
	if roc > 1 {
		return fmt.Errorf("a chain holds roc at most once: the second would redraw from what the first chose")
	}
	return checkSource(c.Links, c.Source)
}

// String names the links in their order.
func (c Chain) String() string {
	if len(c.Links) == 0 {
		return "every row with a reward"
	}
	names := make([]string, len(c.Links))
	for i, l := range c.Links {
		names[i] = l.name()
	}
	return strings.Join(names, ", then ")
}

// Select runs the chain over the rows of a step.
func (c Chain) Select(rows []Row) (Selection, error) {
	if err := c.Validate(); err != nil {
		return Selection{}, fmt.Errorf("select trajectories: %w", err)
	}
	rows, err := canonical(rows)
	if err != nil {
		return Selection{}, fmt.Errorf("select trajectories: %w", err)
	}
	s := newStep(rows, c.Source)
	for _, l := range c.Links {
		l.apply(s)
	}
	s.out.sum(s.groups)
	return s.out, nil
}

// step is the state that links share: the sorted rows, their groups and the verdicts so far.
type step struct {
	rows   []Row
	groups []group
	source Source
	out    Selection
	chosen []bool // scratch of keepOnly, all false between calls
}

func newStep(rows []Row, source Source) *step {
	s := &step{rows: rows, groups: splitGroups(rows), source: source, chosen: make([]bool, len(rows))}
	s.out = Selection{
		Rows: make([]Selected, len(rows)), Groups: len(s.groups),
		DroppedBy: map[Reason]int{}, MaskedBy: map[Reason]int{},
	}
	s.describe()
	for _, g := range s.groups {
		s.out.startGroup(rows, g)
		if g.short() {
			s.out.dropAll(g, TooFewRows)
		}
	}
	return s
}

// describe computes the mean, variance and value score of every group, and R_max. Short groups do not count in
// R_max.
func (s *step) describe() {
	var whole []*group
	var rewards [][]float64
	for i := range s.groups {
		g := &s.groups[i]
		own := g.rewards(s.rows)
		if g.short() {
			g.prompt.Mean, g.prompt.Variance = advantage.Moments(own)
			continue
		}
		whole, rewards = append(whole, g), append(rewards, own)
	}
	r := advantage.VSPO{}.Resample(rewards, nil) // keeps every group, so nothing is drawn
	s.out.RewardMax = r.RMax
	for i, g := range whole {
		g.prompt = r.Prompts[i]
	}
}

// groupsWithRows returns the groups that have a row left and the rewards of those rows.
func (s *step) groupsWithRows() (groups []*group, rewards [][]float64) {
	groups, rewards = make([]*group, 0, len(s.groups)), make([][]float64, 0, len(s.groups))
	all := make([]float64, 0, len(s.rows)) // one backing array for every group
	for i := range s.groups {
		g, from := &s.groups[i], len(all)
		for k := g.from; k < g.to; k++ {
			if s.out.Rows[k].Kept {
				all = append(all, s.rows[k].Reward)
			}
		}
		if len(all) > from {
			groups, rewards = append(groups, g), append(rewards, all[from:len(all):len(all)])
		}
	}
	return groups, rewards
}

// allEqual reports that all of a group's rewards are the same.
func allEqual(rewards []float64) bool { return slices.Max(rewards) == slices.Min(rewards) }

// maskRows masks the rows that match.
func (s *step) maskRows(why Reason, match func(*Row) bool) {
	for i := range s.rows {
		if s.out.Rows[i].Kept && match(&s.rows[i]) {
			s.out.mask(i, why)
		}
	}
}
