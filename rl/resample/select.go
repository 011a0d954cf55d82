package resample

import (
	"fmt"
	"math/rand/v2"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// Row is one trajectory as the selection sees it.
type Row struct {
	GroupID      string
	TrajectoryID string // unique within the group
	ProblemID    string // of the data set; read by HardProblems alone
	Reward       float64
	ToolCalls    int
	ToolErrors   int // failing calls: unparsed, failed or timed out
	AnswerTags   int // closed answer pairs
	Turns        int // assistant turns
	// ResponseTokens is the length that Overlong compares with its limit.
	ResponseTokens int
	VoidTurns      int  // turns with neither a tool call that parsed nor a final answer
	LooseTurns     int  // turns that are not in the environment's strict form
	Repetitive     bool // as Repetition.Match says
	Unreadable     bool // as Unreadable.Match says
	// Round is the batch of dynamic sampling that the row's group is of, from 0; read by Rounds alone.
	Round int
	// Penalties, where given, are what RoC weighs in place of those that it counts itself.
	Penalties *Penalties
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

// Options is the chain of dynamic sampling, RejectEqual, LowVariance, VSPO, RoC, then the masks in their
// order; a nil part is off. Source may be nil only when nothing is drawn.
type Options struct {
	Dynamic     *Rounds
	RejectEqual bool
	LowVariance *LowVariance
	VSPO        *advantage.VSPO
	RoC         *RoC
	Masks       []Link // Overlong, Void, Repetition, Unreadable
	Source      Source
}

// Validate reports the first bad field.
func (o Options) Validate() error { return o.chain().Validate() }

// String names the links of the chain in their order.
func (o Options) String() string { return o.chain().String() }

// chain spells the options as links.
func (o Options) chain() Chain {
	c := Chain{Source: o.Source}
	if o.Dynamic != nil {
		c.Links = append(c.Links, *o.Dynamic)
	}
	if o.RejectEqual {
		c.Links = append(c.Links, RejectEqual{})
	}
	if o.LowVariance != nil {
		c.Links = append(c.Links, *o.LowVariance)
	}
	if o.VSPO != nil {
		c.Links = append(c.Links, ValueResampling{*o.VSPO})
	}
	if o.RoC != nil {
		c.Links = append(c.Links, *o.RoC)
	}
	c.Links = append(c.Links, o.Masks...)
	return c
}

// Selected is the verdict on one trajectory.
type Selected struct {
	GroupID      string
	TrajectoryID string
	Reward       float64 // of no meaning when excluded
	Kept         bool
	// Masked: the row is kept and its reward counts in the group, but its loss mask is to be 0.
	Masked        bool
	Count         int     // N; 0 when dropped
	Weight        float64 // ω; 0 when dropped
	Reason        Reason  // why dropped or masked; "" when kept whole
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
	KeptRows   int // masked ones among them
	MaskedRows int
	Resampled  bool // VSPO drew
	RewardMax  float64
	DroppedBy  map[Reason]int // rows
	MaskedBy   map[Reason]int // rows
}

// Empty reports that no row is left to learn from: the update is to be skipped.
func (s Selection) Empty() bool { return s.KeptRows == s.MaskedRows }

// Select runs the chain of the options over the rows of a step.
func Select(rows []Row, o Options) (Selection, error) {
	return o.chain().Select(rows)
}

// open writes what holds for every row of a group and keeps all that have a reward.
func (s *Selection) open(rows []Row, g group) {
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

// drop drops a row; the first reason to drop it stands.
func (s *Selection) drop(i int, why Reason) {
	row := &s.Rows[i]
	if !row.Kept {
		return
	}
	row.Kept, row.Masked, row.Count, row.Weight, row.Reason = false, false, 0, 0, why
}

// mask takes a row's tokens out of the loss; the first reason to mask it stands.
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
			return fmt.Errorf("a source of random streams is needed by %T", l)
		}
	}
	return nil
}
