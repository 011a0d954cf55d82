package resample

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// Reason says why a trajectory was dropped.
type Reason string

// The reasons.
const (
	ZeroVariance       Reason = "zero_variance"        // the group's rewards teach nothing
	SmallGroup         Reason = "small_group"          // fewer trajectories than RoC keeps
	RoCPositiveSurplus Reason = "roc_positive_surplus" // another positive was chosen
	RoCNegativeSurplus Reason = "roc_negative_surplus" // another negative was chosen
	Excluded           Reason = "excluded"             // something broke it; it has no reward
	TooFewRows         Reason = "too_few_rows"         // exclusions left the group nothing to compare
)

// Reasons lists every reason.
func Reasons() []Reason {
	return []Reason{ZeroVariance, SmallGroup, RoCPositiveSurplus, RoCNegativeSurplus, Excluded, TooFewRows}
}

// Row is one trajectory as the selection sees it.
type Row struct {
	GroupID      string
	TrajectoryID string // unique within the group
	Reward       float64
	ToolCalls    int
	ToolErrors   int // failing calls: unparsed, failed or timed out
	AnswerTags   int // closed answer pairs
	Turns        int // assistant turns
	// Excluded: the row was sampled and has no reward. Nothing but its ids is read.
	Excluded bool
}

// Source gives the random stream of a label and group; equal arguments must give equal streams.
type Source func(label, group string) *rand.Rand

// The labels under which streams are asked for.
const (
	LabelVSPO = "vspo" // one stream for the whole batch; its group is ""
	LabelRoC  = "roc"  // one stream per group
)

// Options is the chain; a nil part is off. Source may be nil only when nothing is drawn.
type Options struct {
	VSPO   *advantage.VSPO
	RoC    *RoC
	Source Source
}

// Validate reports the first bad field.
func (o Options) Validate() error {
	if o.VSPO != nil {
		if err := o.VSPO.Validate(); err != nil {
			return fmt.Errorf("vspo.%w", err)
		}
	}
	if o.RoC != nil {
		if err := o.RoC.Validate(); err != nil {
			return err
		}
	}
	if o.Source == nil && (o.VSPO != nil || o.RoC != nil && o.RoC.Choice != ChooseLowest) {
		return errors.New("a source of random streams is needed")
	}
	return nil
}

// Selected is the verdict on one trajectory.
type Selected struct {
	GroupID       string
	TrajectoryID  string
	Reward        float64 // of no meaning when excluded
	Kept          bool
	Count         int     // N; 0 when dropped
	Weight        float64 // ω; 0 when dropped
	Reason        Reason  // "" when kept
	Penalties     Penalties
	GroupMean     float64 // over all oversampled rewards; 0 of none
	GroupVariance float64 // population, over all oversampled rewards; 0 of none
	ValueScore    float64
}

// Selection is the verdict on a step's trajectories.
type Selection struct {
	Rows       []Selected // every row, in canonical order
	Groups     int
	KeptGroups int // groups with a kept row
	KeptRows   int
	Resampled  bool // VSPO drew
	RewardMax  float64
	DroppedBy  map[Reason]int // rows
}

// Empty reports that nothing was kept: the update is to be skipped.
func (s Selection) Empty() bool { return s.KeptRows == 0 }

// Select runs the chain over the rows of a step.
func Select(rows []Row, o Options) (Selection, error) {
	if err := o.Validate(); err != nil {
		return Selection{}, fmt.Errorf("select trajectories: %w", err)
	}
	rows, err := canonical(rows)
	if err != nil {
		return Selection{}, fmt.Errorf("select trajectories: %w", err)
	}
	groups := cut(rows)
	out := Selection{Rows: make([]Selected, len(rows)), Groups: len(groups), DroppedBy: map[Reason]int{}}
	out.value(rows, groups, o)
	for _, g := range groups {
		out.open(rows, g)
		switch {
		case g.short():
			out.dropAll(g, TooFewRows)
		case g.flat:
			out.dropAll(g, ZeroVariance)
		case o.RoC != nil:
			out.roc(g, *o.RoC, o.Source)
		}
	}
	out.sum(groups)
	return out, nil
}

// value scores the groups, draws the repeats and marks the groups without variance. Short groups
// take no part: neither R_max nor the draws know of them.
func (s *Selection) value(rows []Row, groups []group, o Options) {
	var whole []*group
	var rewards [][]float64
	for i := range groups {
		g := &groups[i]
		own := g.rewards(rows)
		if g.short() {
			g.prompt.Mean, g.prompt.Variance = advantage.Moments(own)
			continue
		}
		whole, rewards = append(whole, g), append(rewards, own)
	}
	vspo := advantage.VSPO{} // without draws: mean, variance and value score alone
	var uniform func() float64
	if o.VSPO != nil {
		vspo, uniform = *o.VSPO, o.Source(LabelVSPO, "").Float64
	}
	r := vspo.Resample(rewards, uniform)
	s.Resampled, s.RewardMax = r.Active, r.RMax
	rejectEqual := o.RoC != nil && !o.RoC.KeepEqual
	for i, g := range whole {
		g.prompt = r.Prompts[i]
		equal := slices.Max(rewards[i]) == slices.Min(rewards[i])
		g.flat = r.Active && !g.prompt.Kept || rejectEqual && (equal || !g.prompt.Kept)
	}
}

// open writes what holds for every row of a group and keeps all that have a reward.
func (s *Selection) open(rows []Row, g group) {
	for i := g.from; i < g.to; i++ {
		r := rows[i]
		s.Rows[i] = Selected{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			Kept: true, Count: g.prompt.N, Weight: g.prompt.Omega,
			Penalties: StructuredPenalties(r.ToolCalls, r.ToolErrors, r.AnswerTags, r.Turns),
			GroupMean: g.prompt.Mean, GroupVariance: g.prompt.Variance, ValueScore: g.prompt.Value,
		}
		if r.Excluded {
			s.Rows[i].Penalties = Penalties{}
			s.drop(i, Excluded)
		}
	}
}

// roc drops the surplus of one group.
func (s *Selection) roc(g group, r RoC, source Source) {
	if g.scored < r.Keep {
		s.dropAll(g, SmallGroup)
		return
	}
	if g.scored == r.Keep {
		return
	}
	var positives, negatives []candidate
	for i := g.from; i < g.to; i++ {
		if !s.Rows[i].Kept {
			continue
		}
		c := candidate{index: i, penalty: s.Rows[i].Penalties.Total()}
		if s.Rows[i].Reward > 0 {
			positives = append(positives, c)
		} else {
			negatives = append(negatives, c)
		}
	}
	var stream *rand.Rand
	if r.Choice != ChooseLowest {
		stream = source(LabelRoC, g.id)
	}
	keepPositive, keepNegative := r.Quota(len(positives), len(negatives))
	s.keepOnly(positives, r.pickPositives(positives, keepPositive, stream), RoCPositiveSurplus)
	s.keepOnly(negatives, r.pickNegatives(negatives, keepNegative, stream), RoCNegativeSurplus)
}

// keepOnly drops the candidates that were not chosen.
func (s *Selection) keepOnly(from []candidate, chosen []int, why Reason) {
	for _, c := range from {
		if !slices.Contains(chosen, c.index) {
			s.drop(c.index, why)
		}
	}
}

func (s *Selection) dropAll(g group, why Reason) {
	for i := g.from; i < g.to; i++ {
		s.drop(i, why)
	}
}

// drop drops a row; the first reason stands.
func (s *Selection) drop(i int, why Reason) {
	row := &s.Rows[i]
	if row.Reason != "" {
		return
	}
	row.Kept, row.Count, row.Weight, row.Reason = false, 0, 0, why
}

// sum counts what was kept.
func (s *Selection) sum(groups []group) {
	for _, g := range groups {
		kept := 0
		for _, row := range s.Rows[g.from:g.to] {
			if row.Kept {
				kept++
			} else {
				s.DroppedBy[row.Reason]++
			}
		}
		s.KeptRows += kept
		if kept > 0 {
			s.KeptGroups++
		}
	}
}
