package resample

import (
	"fmt"
	"math/rand/v2"
)

// Row is one trajectory as the selection sees it.
type Row struct {
	GroupID      string
	TrajectoryID string // unique within the group
	Reward       float64
	ToolCalls    int
	ToolErrors   int // failing calls: unparsed, failed or timed out
	AnswerTags   int // closed answer pairs
	Turns        int // assistant turns
	// Matched are the reasons of the filters that match the row; read by Mask alone.
	Matched []Reason
	// Round is the batch of dynamic sampling in which the row's group was sampled, from 0; read by Rounds alone.
	Round int
	// Mixed says that the group's turns are of several versions of the policy; read by OneVersion alone.
	Mixed bool
	// Penalties, if set, replace those that RoC would count itself.
	Penalties *Penalties
	// Excluded says that the row was sampled and has no reward. Only its ids are read.
	Excluded bool
}

// Source returns the random stream of a label and a group. Equal arguments must give equal streams.
type Source func(label, group string) *rand.Rand

// The labels under which streams are asked for.
const (
	LabelVSPO = "vspo" // one stream for the whole batch; its group is ""
	LabelRoC  = "roc"  // one stream per group
)

// Selected is the verdict on one trajectory.
type Selected struct {
	GroupID      string
	TrajectoryID string
	Reward       float64 // meaningless when excluded
	Kept         bool
	// Masked says that the row is kept and its reward counts in the group, but its loss mask must become 0.
	Masked        bool
	Count         int     // N; 0 when dropped
	Weight        float64 // ω; 0 when dropped
	Reason        Reason  // why dropped or masked; "" when kept whole
	Penalties     Penalties
	GroupMean     float64 // over all sampled rewards; 0 without any
	GroupVariance float64 // population, over all sampled rewards; 0 without any
	ValueScore    float64
}

// Selection is the verdict on a step's trajectories.
type Selection struct {
	Rows       []Selected // every row, in canonical order
	Groups     int
	KeptGroups int // groups with a kept row
	KeptRows   int // masked rows included
	MaskedRows int
	Resampled  bool // VSPO drew
	RewardMax  float64
	DroppedBy  map[Reason]int // rows
	MaskedBy   map[Reason]int // rows
}

// Empty reports that no row is left to learn from, so that the update must be skipped.
func (s Selection) Empty() bool { return s.KeptRows == s.MaskedRows }

// startGroup fills in the group's statistics for every row of a group and keeps the rows that have a reward.
func (s *Selection) startGroup(rows []Row, g group) {
	for i := g.from; i < g.to; i++ {
		r := &rows[i]
		s.Rows[i] = Selected{
			GroupID: r.GroupID, TrajectoryID: r.TrajectoryID, Reward: r.Reward,
			Kept: true, Count: 1, Weight: 1, Penalties: r.penalties(),
			GroupMean: g.prompt.Mean, GroupVariance: g.prompt.Variance, ValueScore: g.prompt.Value,
		}
		if r.Excluded {
			s.Rows[i].Penalties = Penalties{}
			s.drop(i, Excluded)
		}
	}
}

func (r *Row) penalties() Penalties {
	if r.Penalties != nil {
		return *r.Penalties
	}
	return StructuredPenalties(r.ToolCalls, r.ToolErrors, r.AnswerTags, r.Turns)
}

func (s *Selection) dropAll(g group, why Reason) {
	for i := g.from; i < g.to; i++ {
		s.drop(i, why)
	}
}

// drop drops a row. If a row is dropped twice, the first reason is kept.
func (s *Selection) drop(i int, why Reason) {
	row := &s.Rows[i]
	if !row.Kept {
		return
	}
	row.Kept, row.Masked, row.Count, row.Weight, row.Reason = false, false, 0, 0, why
}

// mask takes a row's tokens out of the loss. If a row is masked twice, the first reason is kept.
func (s *Selection) mask(i int, why Reason) {
	if row := &s.Rows[i]; row.Kept && !row.Masked {
		row.Masked, row.Reason = true, why
	}
}

// sum counts what was kept.
func (s *Selection) sum(groups []group) {
	for _, g := range groups {
		kept := 0
		for _, row := range s.Rows[g.from:g.to] {
			switch {
			case !row.Kept:
				s.DroppedBy[row.Reason]++
			case row.Masked:
				s.MaskedBy[row.Reason]++
				s.MaskedRows++
			}
			if row.Kept {
				kept++
			}
		}
		s.KeptRows += kept
		if kept > 0 {
			s.KeptGroups++
		}
	}
}

// checkSource reports a chain that draws without a source.
func checkSource(links []Link, source Source) error {
	for _, l := range links {
		if l.draws() && source == nil {
			return fmt.Errorf("%T needs a source of random streams", l)
		}
	}
	return nil
}
