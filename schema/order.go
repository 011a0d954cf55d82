package schema

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// position is a row's place in its table's canonical order: texts first, then numbers.
type position struct {
	texts   [3]string
	numbers [5]int64
}

func (p position) compare(q position) int {
	for i := range p.texts {
		if c := strings.Compare(p.texts[i], q.texts[i]); c != 0 {
			return c
		}
	}
	return slices.Compare(p.numbers[:], q.numbers[:])
}

func trajectoryPosition(group, trajectory string, numbers ...int32) position {
	p := position{texts: [3]string{group, trajectory}}
	for i, n := range numbers {
		p.numbers[i] = int64(n)
	}
	return p
}

func (r PromptRow) position() position     { return trajectoryPosition(r.GroupID, "") }
func (r TurnRow) position() position       { return trajectoryPosition(r.GroupID, r.TrajectoryID, r.Turn) }
func (r TrajectoryRow) position() position { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
func (r GradingRow) position() position    { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
func (r RewardRow) position() position     { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
func (r SelectionRow) position() position  { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
func (r TokenOutputsRow) position() position {
	return trajectoryPosition(r.GroupID, r.TrajectoryID)
}
func (r ReplayRow) position() position   { return trajectoryPosition(r.GroupID, r.TrajectoryID) }
func (r BaselineRow) position() position { return trajectoryPosition(r.GroupID, "") }

// position puts a whole trajectory where its first turn would be.
func (r BatchRow) position() position {
	turn := int32(0)
	if r.Turn != nil {
		turn = *r.Turn
	}
	return trajectoryPosition(r.GroupID, r.TrajectoryID, turn)
}

func (r ToolCallRow) position() position {
	return trajectoryPosition(r.GroupID, r.TrajectoryID, r.Turn, r.Call)
}

func (r TransitionRow) position() position {
	return trajectoryPosition(r.GroupID, r.TrajectoryID, r.Turn)
}

func (r UpdateRow) position() position {
	return position{numbers: [5]int64{r.OptimizerStep, int64(r.Minibatch)}}
}

func (r EvaluationRow) position() position {
	greedy := int64(0)
	if r.Greedy {
		greedy = 1
	}
	return position{texts: [3]string{r.Tag, r.ProblemID}, numbers: [5]int64{greedy, int64(r.Sample)}}
}

func (r EvaluationDebateRow) position() position {
	return position{texts: [3]string{r.GroupID},
		numbers: [5]int64{int64(r.Sample), int64(r.Turn), int64(r.Round), int64(r.Agent)}}
}

func (r TimingRow) position() position {
	return position{
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
//	selection, token_outputs, replay           group, trajectory
//	turns                                      group, trajectory, turn
//	tool_calls                                 group, trajectory, turn, call
//	updates                                    optimizer_step, minibatch
//	evaluations                                tag, problem, greedy, sample
//	evaluation_debates                         group, sample, turn, round, agent
//	timings                                    stage, kind, trajectory, shard, turn, call, attempt, start
func Sort[R Row](rows []R) {
	slices.SortStableFunc(rows, func(a, b R) int { return a.position().compare(b.position()) })
}

// SortBatch puts batch rows into canonical order (group, trajectory, turn), in place.
func SortBatch(rows []BatchRow) {
	slices.SortStableFunc(rows, func(a, b BatchRow) int { return a.position().compare(b.position()) })
}

// checkOrder returns an error naming the first of n rows that is out of order or repeated.
func checkOrder(t Table, n int, at func(int) position) error {
	var p, q position
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

func (p position) String() string {
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
