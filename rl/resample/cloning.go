package resample

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/ropewalk/ropewalk/rl/choice"
)

// Cloning selects the episodes of a teacher that become behaviour-cloning data: successful episodes in which
// every turn has the strict form, one for each sequence of actions, at most PerTask for each task.
//
// Source: ARLArena's rejection-sampled fine-tuning set. Departures: its text says high-scoring rollouts and
// names no threshold; the threshold here is success. The strict form, the deduplication and the cap are
// additions. Among several candidates the first by trajectory id is taken.
type Cloning struct {
	PerTask    int  `min:"0"` // most episodes of one task; 0 = no cap
	AllowLoose bool // accept turns that are not in the strict form
}

// Validate reports the first bad field.
func (c Cloning) Validate() error { return choice.Check("cloning.", c) }

// Episode is one rollout of the teacher.
type Episode struct {
	TaskID       string
	TrajectoryID string // unique within the task
	Success      bool
	LooseTurns   int      // turns that are not in the strict form
	Actions      []string // in turn order
}

// EpisodeVerdict says whether an episode becomes data.
type EpisodeVerdict struct {
	TaskID       string
	TrajectoryID string
	Kept         bool
	Reason       Reason // "" when kept
}

// Select judges the episodes, in order of task, then trajectory.
func (c Cloning) Select(episodes []Episode) ([]EpisodeVerdict, error) {
	if err := c.Validate(); err != nil {
		return nil, fmt.Errorf("select episodes: %w", err)
	}
	sorted := slices.SortedFunc(slices.Values(episodes), func(a, b Episode) int {
		return cmp.Or(cmp.Compare(a.TaskID, b.TaskID), cmp.Compare(a.TrajectoryID, b.TrajectoryID))
	})
	out := make([]EpisodeVerdict, len(sorted))
	seen, kept := map[string]bool{}, 0
	for i, e := range sorted {
		if i == 0 || sorted[i-1].TaskID != e.TaskID {
			seen, kept = map[string]bool{}, 0
		} else if sorted[i-1].TrajectoryID == e.TrajectoryID {
			return nil, fmt.Errorf("select episodes: trajectory %s of task %s occurs twice", e.TrajectoryID, e.TaskID)
		}
		if e.LooseTurns < 0 {
			return nil, fmt.Errorf(
				"select episodes: trajectory %s of task %s has %d loose turns", e.TrajectoryID, e.TaskID, e.LooseTurns,
			)
		}
		why := c.judge(e, seen, kept)
		if why == "" {
			kept++
		}
		out[i] = EpisodeVerdict{TaskID: e.TaskID, TrajectoryID: e.TrajectoryID, Kept: why == "", Reason: why}
	}
	return out, nil
}

// judge returns why an episode is dropped, and notes the actions of one that is not.
func (c Cloning) judge(e Episode, seen map[string]bool, kept int) Reason {
	key := sequence(e.Actions)
	switch {
	case !e.Success:
		return NotSuccessful
	case e.LooseTurns > 0 && !c.AllowLoose:
		return InvalidTurn
	case seen[key]:
		return DuplicateAction
	case c.PerTask > 0 && kept >= c.PerTask:
		return TaskFull
	}
	seen[key] = true
	return ""
}

// sequence returns a name for a list of actions. Different lists have different names, whatever the actions contain.
func sequence(actions []string) string {
	var key []byte
	for _, a := range actions {
		key = binary.AppendUvarint(key, uint64(len(a)))
		key = append(key, a...)
	}
	return string(key)
}
