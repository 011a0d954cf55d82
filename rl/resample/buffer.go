package resample

import (
	"cmp"
	"fmt"
	"math"
	"slices"

	"github.com/ropewalk/ropewalk/rl/advantage"
)

// ReplayRow is one row of a step as the buffer sees it: a trajectory, or one turn of it where rows
// are turns.
type ReplayRow struct {
	GroupID      string
	TrajectoryID string // unique within the group
	Turn         int    // 0 where rows are trajectories
	Reward       float64
	Advantage    float64 // mean over the row's valid tokens; 0 of a masked row
	ToolCalls    int
}

// Entry is one row that the buffer holds, by name, with what is needed to judge it again. Its
// tokens, mask and log-probabilities stay where its step committed them.
type Entry struct {
	Step         int // of its collection
	GroupID      string
	TrajectoryID string
	Turn         int
	Reward       float64 // as stored when collected
	Advantage    float64 // at collection, > 0
}

// Buffer is the state of SPEAR's replay between steps: the replay buffer D, in order of step,
// group, trajectory and turn, and the baseline queue D_R. The zero value is the empty state. Advance
// never changes a buffer that it is given.
type Buffer struct {
	Entries   []Entry
	Baselines advantage.BaselineQueue
}

// Fate is what became of a row or an entry.
type Fate string

// The fates.
const (
	Stored   Fate = "stored"   // a row of the step entered the buffer
	Passed   Fate = "passed"   // a row of the step did not
	Imitated Fate = "imitated" // an entry is part of this step's replay update
	Retired  Fate = "retired"  // an entry left the buffer unused
)

// ReplayVerdict is what a step did with one entry or row.
type ReplayVerdict struct {
	Entry        Entry
	Fate         Fate
	Reason       Reason  // of Passed and Retired
	Recalibrated float64 // Ã, where the entry was judged again
}

// Replayed is what a step did with the buffer.
type Replayed struct {
	// Consumed: the buffer was full, so its entries were judged again and it was emptied; the update
	// is on the step's rows and on the Imitated entries. Without it the update is on-policy alone.
	Consumed bool
	P50      float64 // that the entries were judged by; 0 unless Consumed
	Stored   int
	Imitated int
	// Verdicts: the entries that left the buffer, then the step's rows, each in canonical order.
	Verdicts []ReplayVerdict
}

// note adds a verdict and counts it.
func (r *Replayed) note(v ReplayVerdict) {
	r.Verdicts = append(r.Verdicts, v)
	switch v.Fate {
	case Stored:
		r.Stored++
	case Imitated:
		r.Imitated++
	}
}

func compareReplay(a, b ReplayRow) int {
	return cmp.Or(cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID), cmp.Compare(a.Turn, b.Turn))
}

// replayOrder returns the rows in canonical order and checks them.
func replayOrder(rows []ReplayRow) ([]ReplayRow, error) {
	sorted := slices.SortedFunc(slices.Values(rows), compareReplay)
	for i, r := range sorted {
		name := fmt.Sprintf("turn %d of trajectory %s of group %s", r.Turn, r.TrajectoryID, r.GroupID)
		switch {
		case !finite(r.Reward):
			return nil, fmt.Errorf("reward of %s is %g", name, r.Reward)
		case !finite(r.Advantage):
			return nil, fmt.Errorf("advantage of %s is %g", name, r.Advantage)
		case r.Turn < 0 || r.ToolCalls < 0:
			return nil, fmt.Errorf("%s has impossible counts: %d tool calls", name, r.ToolCalls)
		case i > 0 && compareReplay(r, sorted[i-1]) == 0:
			return nil, fmt.Errorf("%s occurs twice", name)
		}
	}
	return sorted, nil
}

// check reports a buffer that no step before this one can have left.
func (b Buffer) check(step int) error {
	for i, e := range b.Entries {
		if e.Step >= step {
			return fmt.Errorf("the buffer holds rows of step %d already", e.Step)
		}
		if !finite(e.Reward) || !finite(e.Advantage) {
			return fmt.Errorf("entry %d of the buffer has reward %g and advantage %g", i, e.Reward, e.Advantage)
		}
	}
	for i, e := range b.Baselines {
		if e.Step >= step {
			return fmt.Errorf("the baseline queue holds groups of step %d already", e.Step)
		}
		if !finite(e.Mean) {
			return fmt.Errorf("baseline %d of the queue is %g", i, e.Mean)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
