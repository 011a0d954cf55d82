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
	Advantage    float64 // mean over the row's valid tokens; 0 for a masked row
	ToolCalls    int
}

// Entry is one row of the buffer: its name and what is needed to evaluate it again. Its tokens, mask and
// log-probabilities stay in the shards that its step committed.
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

// Fate says what happened to a row or an entry.
type Fate string

// The fates.
const (
	Stored   Fate = "stored"   // a row of the step entered the buffer
	Passed   Fate = "passed"   // a row of the step did not
	Imitated Fate = "imitated" // an entry is part of this step's replay update
	Retired  Fate = "retired"  // an entry left the buffer unused
)

// ReplayVerdict says what a step did with one entry or row.
type ReplayVerdict struct {
	Entry        Entry
	Fate         Fate
	Reason       Reason  // of Passed and Retired
	Recalibrated float64 // Ã, if the entry was evaluated again
}

// Replayed is what a step did with the buffer.
type Replayed struct {
	// Consumed says that the buffer was full: its entries were evaluated again and it was emptied. The update
	// then uses the step's rows and the Imitated entries. Otherwise the update uses the step's rows alone.
	Consumed bool
	P50      float64 // the median that the entries were compared with; 0 unless Consumed
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
	return cmp.Or(
		cmp.Compare(a.GroupID, b.GroupID), cmp.Compare(a.TrajectoryID, b.TrajectoryID), cmp.Compare(a.Turn, b.Turn),
	)
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

// check reports a buffer that cannot come from a step before this one.
func (b Buffer) check(step int) error {
	for i, e := range b.Entries {
		if e.Step >= step {
			return fmt.Errorf("the buffer already holds rows of step %d", e.Step)
		}
		if !finite(e.Reward) || !finite(e.Advantage) {
			return fmt.Errorf("entry %d of the buffer has reward %g and advantage %g", i, e.Reward, e.Advantage)
		}
	}
	for i, e := range b.Baselines {
		if e.Step >= step {
			return fmt.Errorf("the baseline queue already holds groups of step %d", e.Step)
		}
		if !finite(e.Mean) {
			return fmt.Errorf("baseline %d of the queue is %g", i, e.Mean)
		}
	}
	return nil
}

func finite(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
