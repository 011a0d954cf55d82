package resample

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

var dynamic = Rule{
	Choice: choice.Choice{
		Name: "dynamic", Doc: "sample again until enough groups are informative",
		Source:    "DAPO (Yu et al. 2025); ARLArena §2",
		Field:     "DAPO's dynamic sampling: sample again until enough groups are informative; null or absent = off",
		Only:      "trained",
		Dimension: choice.DynamicFiltering,
		Settings:  DynamicSampling{Tries: defaultTries, Refill: RefillNew},
	},
	Excludes: []Exclusion{
		{"vspo", "both replace groups of equal rewards, and after dynamic sampling there are none left"},
	},
	Brief: func(s any) string { return fmt.Sprintf("dynamic, %d tries", s.(DynamicSampling).Tries) },
}

// Fill chooses how the last try makes up a shortfall.
type Fill string

// FillAfter takes the informative groups of the last try first and then its uniform ones, until there are enough.
// FillInOrder (the release) takes the last try's groups in order.
const (
	FillAfter   Fill = "after"
	FillInOrder Fill = "in_order"
)

// DynamicSampling rolls out batches of groups until enough are informative:
//
//	keep a group iff its rewards are not all equal; stop at Target groups or after Tries batches
//
// Source: DAPO, as ARLArena runs it (3 tries, 2 for mathematics; no filter for the first steps).
// The last try fills a shortfall with its own uniform groups. Groups beyond Target are dropped whole. The paper's
// criterion is 0 < correct < G. Departures: as in the release, a group is informative if its raw rewards differ
// (Informative); and the caller chooses whether a further try repeats prompts or takes new ones (Refill).
type DynamicSampling struct {
	Target    int    // groups; a run's own are the prompts of a step
	Tries     int    `json:"tries" min:"1" max:"1000" doc:"batches sampled at most for one step; the last is filled up with groups of equal rewards"`
	ColdStart int    `json:"cold_start_steps" min:"0" max:"1000000" doc:"first steps that take every group"`
	Refill    Refill `json:"refill" enum:"new|same" doc:"a further batch is of new prompts, or of the same ones"`
	Fill      Fill   // FillAfter when empty
}

// Refill chooses the prompts of a further batch. The caller that samples the batches reads it.
type Refill string

// A further batch is of new prompts, or of the step's prompts again.
const (
	RefillNew  Refill = "new"
	RefillSame Refill = "same"
)

// Link selects among the rounds that the step was sampled in.
func (d DynamicSampling) Link(s Sampling) Link {
	d.Target = s.Groups
	return Rounds{DynamicSampling: d, Step: s.Step}
}

const defaultTries = 3

// Validate reports the first bad field.
func (d DynamicSampling) Validate() error {
	switch {
	case d.Target < 1:
		return fmt.Errorf("dynamic.target must be ≥ 1, got %d", d.Target)
	case d.Tries < 0 || d.ColdStart < 0:
		return fmt.Errorf("dynamic.tries and dynamic.cold_start must be ≥ 0, got %d and %d", d.Tries, d.ColdStart)
	case !slices.Contains([]Fill{"", FillAfter, FillInOrder}, d.Fill):
		return fmt.Errorf("dynamic.fill must be %s or %s, got %q", FillAfter, FillInOrder, d.Fill)
	}
	return nil
}

// Accumulation is a step's dynamic sampling so far. The zero value is its beginning.
type Accumulation struct {
	Tries  int      // batches that were rolled out
	Kept   []string // ids of the groups kept, in order
	Filled int      // uniform groups among them, taken by the last try
	Done   bool     // no further batch is wanted; Kept may be short of Target after the last try
}

// Outcome is one group of a batch. Its id is unique within the step.
type Outcome struct {
	GroupID     string
	Informative bool
}

// GroupVerdict says whether a group is kept.
type GroupVerdict struct {
	GroupID string
	Kept    bool
	Reason  Reason // "" when kept
}

// Advance adds one batch of a step and decides which of its groups are kept, in order of their ids.
func (d DynamicSampling) Advance(a Accumulation, step int, batch []Outcome) (Accumulation, []GroupVerdict, error) {
	if err := d.Validate(); err != nil {
		return a, nil, fmt.Errorf("sample dynamically: %w", err)
	}
	if a.Done {
		return a, nil, fmt.Errorf("sample dynamically: the step already has its groups after %d tries", a.Tries)
	}
	batch = slices.SortedFunc(slices.Values(batch), func(x, y Outcome) int { return cmp.Compare(x.GroupID, y.GroupID) })
	for i, o := range batch {
		if slices.Contains(a.Kept, o.GroupID) || i > 0 && batch[i-1].GroupID == o.GroupID {
			return a, nil, fmt.Errorf("sample dynamically: group %s occurs twice", o.GroupID)
		}
	}
	next := Accumulation{Tries: a.Tries + 1, Kept: slices.Clone(a.Kept), Filled: a.Filled}
	tries := d.Tries
	if tries == 0 {
		tries = defaultTries
	}
	last := next.Tries >= tries
	chosen := d.choose(batch, d.Target-len(a.Kept), last, step < d.ColdStart)
	verdicts := make([]GroupVerdict, len(batch))
	for i, o := range batch {
		verdicts[i] = GroupVerdict{GroupID: o.GroupID, Kept: slices.Contains(chosen, i)}
		if !verdicts[i].Kept {
			verdicts[i].Reason = d.dropped(o, step)
		}
	}
	for _, i := range chosen {
		next.Kept = append(next.Kept, batch[i].GroupID)
		if !batch[i].Informative {
			next.Filled++
		}
	}
	next.Done = last || len(next.Kept) >= d.Target
	return next, verdicts, nil
}

// dropped is the reason for which a group that is not kept is dropped.
func (d DynamicSampling) dropped(o Outcome, step int) Reason {
	if !o.Informative && step >= d.ColdStart {
		return ZeroVariance
	}
	return DynamicSurplus
}

// choose returns the groups of the batch that are kept, at most room of them, in the order in which they are kept.
func (d DynamicSampling) choose(batch []Outcome, room int, last, cold bool) []int {
	var first, spare []int
	for i, o := range batch {
		switch {
		case o.Informative || cold || last && d.Fill == FillInOrder:
			first = append(first, i)
		case last:
			spare = append(spare, i)
		}
	}
	all := slices.Concat(first, spare)
	return all[:min(room, len(all))]
}
