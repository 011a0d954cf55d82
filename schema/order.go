package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Position is a row's place in its table's canonical order: texts first, then numbers.
type Position struct {
	texts   [3]string
	numbers [5]int64
}

func (p Position) compare(q Position) int {
	for i := range p.texts {
		if c := strings.Compare(p.texts[i], q.texts[i]); c != 0 {
			return c
		}
	}
	return slices.Compare(p.numbers[:], q.numbers[:])
}

// InTrajectory is the place of a row of a trajectory, or of a group if that is "".
func InTrajectory(group, trajectory string, numbers ...int32) Position {
	p := Position{texts: [3]string{group, trajectory}}
	for i, n := range numbers {
		p.numbers[i] = int64(n)
	}
	return p
}

// Position implements Row.
func (r PromptRow) Position() Position { return InTrajectory(r.GroupID, "") }

// Position implements Row.
func (r TurnRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID, r.Turn) }

// Position implements Row.
func (r TrajectoryRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }

// Position implements Row.
func (r GradingRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }

// Position implements Row.
func (r RewardRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }

// Position implements Row.
func (r SelectionRow) Position() Position { return InTrajectory(r.GroupID, r.TrajectoryID) }

// Position implements Row.
func (r TokenOutputsRow) Position() Position {
	return InTrajectory(r.GroupID, r.TrajectoryID)
}

// Position implements Row.
func (r ReplayRow) Position() Position { return turnPosition(r.GroupID, r.TrajectoryID, r.Turn) }

// Position implements Row.
func (r BaselineRow) Position() Position { return InTrajectory(r.GroupID, "") }

// Position puts a whole trajectory where its first turn would be.
func (r BatchRow) Position() Position { return turnPosition(r.GroupID, r.TrajectoryID, r.Turn) }

func turnPosition(group, trajectory string, turn *int32) Position {
	number := int32(0)
	if turn != nil {
		number = *turn
	}
	return InTrajectory(group, trajectory, number)
}

// Position implements Row.
func (r ToolCallRow) Position() Position {
	return InTrajectory(r.GroupID, r.TrajectoryID, r.Turn, r.Call)
}

// Position implements Row.
func (r TransitionRow) Position() Position {
	return InTrajectory(r.GroupID, r.TrajectoryID, r.Turn)
}

// Position implements Row.
func (r UpdateRow) Position() Position {
	return Position{numbers: [5]int64{r.OptimizerStep, int64(r.Minibatch)}}
}

// Position implements Row.
func (r EvaluationRow) Position() Position {
	greedy := int64(0)
	if r.Greedy {
		greedy = 1
	}
	return Position{texts: [3]string{r.Tag, r.ProblemID}, numbers: [5]int64{greedy, int64(r.Sample)}}
}

// Position implements Row.
func (r EvaluationDebateRow) Position() Position {
	return Position{texts: [3]string{r.GroupID},
		numbers: [5]int64{int64(r.Sample), int64(r.Turn), int64(r.Round), int64(r.Agent)}}
}

// Position implements Row.
func (r TimingRow) Position() Position {
	return Position{
		texts:   [3]string{r.Stage, r.Kind, r.TrajectoryID},
		numbers: [5]int64{int64(r.Shard), int64(r.Turn), int64(r.Call), int64(r.Attempt), r.StartMicros},
	}
}

// repeats reports whether two rows of the table may have the same position.
func (t Table) repeats() bool { return t == Timings }

// Sort puts rows into their table's canonical order, in place:
//
//	prompts, baselines                         group
//	trajectories, gradings, rewards,
//	selection, token_outputs                   group, trajectory
//	turns, replay                              group, trajectory, turn
//	tool_calls                                 group, trajectory, turn, call
//	updates                                    optimizer_step, minibatch
//	evaluations                                tag, problem, greedy, sample
//	evaluation_debates                         group, sample, turn, round, agent
//	timings                                    stage, kind, trajectory, shard, turn, call, attempt, start
func Sort[R Row](rows []R) {
	slices.SortStableFunc(rows, func(a, b R) int { return a.Position().compare(b.Position()) })
}

// SortBatch puts batch rows into canonical order (group, trajectory, turn), in place.
func SortBatch(rows []BatchRow) {
	slices.SortStableFunc(rows, func(a, b BatchRow) int { return a.Position().compare(b.Position()) })
}

// checkOrder returns an error naming the first of n rows that is out of order or repeated.
func checkOrder(t Table, n int, at func(int) Position) error {
	var p, q Position
	for i := range n {
		p, q = q, at(i)
		if i == 0 {
			continue
		}
		c := p.compare(q)
		if c > 0 {
			return fmt.Errorf("table %s row %d: is out of order: %s comes after %s", t, i, p, q)
		}
		if c == 0 && !t.repeats() {
			return fmt.Errorf("table %s row %d: repeats %s", t, i, q)
		}
	}
	return nil
}

// String says where the row is: group, trajectory, numbers.
func (p Position) String() string {
	var parts []string
	for _, s := range p.texts {
		if s != "" {
			parts = append(parts, s)
		}
	}
	last := len(p.numbers)
	for last > 0 && p.numbers[last-1] == 0 {
		last--
	}
	for _, n := range p.numbers[:cmp.Or(last, 1)] {
		parts = append(parts, fmt.Sprint(n))
	}
	return strings.Join(parts, " ")
}
