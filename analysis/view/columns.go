package view

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"unsafe"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/analysis/sql"
	"github.com/ropewalk/ropewalk/schema"
)

// indexTable is the name of the index in SQL.
const indexTable = "all_trajectories"

// Column is a column of the index, by which readers sort and filter.
type Column struct {
	Name  string `json:"name"`
	Type  string `json:"type"`
	Doc   string `json:"doc"`
	value value
}

// entry is a trajectory of a step, or an episode of its evaluation.
type entry struct {
	*analysis.Episode
	step int
	held bool
}

// id is how the index names a group or a trajectory: those of an evaluation have the same ids in the record as those of
// the step.
func (e entry) id(recorded string) string {
	if e.held {
		return heldPrefix + recorded
	}
	return recorded
}

// sampled returns the trajectory's own row; nil where its shard was skipped.
func (e entry) sampled() *schema.TrajectoryRow {
	if e.Trajectory.TrajectoryID == "" {
		return nil
	}
	return &e.Trajectory
}

// selected returns the trajectory's selection; nil where the step selected nothing.
func (e entry) selected() *schema.SelectionRow {
	if e.held || e.Selection.TrajectoryID == "" {
		return nil
	}
	return &e.Selection
}

// value is what a column holds of an entry.
type value func(entry) driver.Value

// Columns are the columns of the index, in their order.
func Columns() []Column { return slices.Clone(columns) }

var columns = []Column{
	{"part", "text", "training, or evaluation for an episode on a held-out task",
		func(e entry) driver.Value { return text(e.part()) }},
	{"step", "integer", "the step that sampled it; 0 for the evaluation before the first step",
		func(e entry) driver.Value { return int32(max(e.step, 0)) }},
	{"group_id", "text", "the group: the trajectories of one prompt",
		func(e entry) driver.Value { return text(e.id(e.Selection.GroupID)) }},
	{"trajectory_id", "text", "the trajectory",
		func(e entry) driver.Value { return text(e.trajectory()) }},
	{"problem_id", "text", "the problem",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.ProblemID) })},
	{"level", "integer", "the problem's level", sampled(func(t *schema.TrajectoryRow) driver.Value { return t.Level })},
	{"problem", "text", "what was asked",
		problem},
	{"gold", "text", "the right answer", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Gold) })},
	{"answer", "text", "the final answer; null without one", sampled(answer)},
	{"reward", "double", "the reward; null for an excluded trajectory",
		scored(func(r *schema.RewardRow) driver.Value { return r.Reward })},
	{"outcome", "double", "the part of the reward that judges the answer",
		scored(func(r *schema.RewardRow) driver.Value { return r.Outcome })},
	{"success", "boolean", "whether the answer is right",
		success},
	{"greedy", "boolean", "whether the likeliest response was taken; null in training",
		greedy},
	{"verdict", "text", "how the answer compared with the gold answer",
		scored(func(r *schema.RewardRow) driver.Value { return text(r.Verdict) })},
	{"fate", "text", "kept, masked: REASON, the reason why it was dropped, or undecided; of an evaluation solved, " +
		"not solved or excluded",
		func(e entry) driver.Value { return text(e.fate()) }},
	{"kept", "boolean", "whether the update could learn from it",
		selected(func(s *schema.SelectionRow) driver.Value { return s.Kept })},
	{"weight", "double", "the weight of its advantages",
		selected(func(s *schema.SelectionRow) driver.Value { return s.Weight })},
	{"count", "integer", "how often the batch counts it",
		selected(func(s *schema.SelectionRow) driver.Value { return s.Count })},
	{"group_mean", "double", "the mean reward of its group",
		selected(func(s *schema.SelectionRow) driver.Value { return s.GroupMean })},
	{"group_variance", "double", "the variance of its group's rewards",
		selected(func(s *schema.SelectionRow) driver.Value { return s.GroupVariance })},
	{"turns", "integer", "responses of the policy",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return t.Turns })},
	{"tool_calls", "integer", "calls of tools",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return t.ToolCalls })},
	{"tool_errors", "integer", "calls that failed",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return t.ToolErrors })},
	{"statuses", "text[]", "the statuses of its calls, in their order",
		statuses},
	{"tokens", "integer", "all tokens", sampled(func(t *schema.TrajectoryRow) driver.Value { return t.Tokens })},
	{"response_tokens", "integer", "tokens that the policy wrote",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return t.ResponseTokens })},
	{"finish", "text", "how it ended", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Finish) })},
	{"source", "text", "rollout, or what it was imported from",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Source) })},
	{"excluded", "text", "what broke; null for a whole trajectory",
		func(e entry) driver.Value { return orNull(e.excluded()) }},
	{"text", "text", "its whole text", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Text) })},
}

// sampled is a value of a trajectory's own row; null without one.
func sampled(of func(*schema.TrajectoryRow) driver.Value) value { return present(entry.sampled, of) }

// scored is a value of a trajectory's reward; null without one.
func scored(of func(*schema.RewardRow) driver.Value) value {
	return present(func(e entry) *schema.RewardRow { return e.Reward }, of)
}

// selected is a value of a trajectory's selection; null without one.
func selected(of func(*schema.SelectionRow) driver.Value) value { return present(entry.selected, of) }

// present is a value of a row of an entry; null without the row.
func present[R any](row func(entry) *R, of func(*R) driver.Value) value {
	return func(e entry) driver.Value {
		r := row(e)
		if r == nil {
			return nil
		}
		return of(r)
	}
}

func answer(t *schema.TrajectoryRow) driver.Value {
	if !t.HasAnswer {
		return nil
	}
	return text(t.FinalAnswer)
}

// The parts of the index.
const (
	partTraining   = "training"
	partEvaluation = "evaluation"
)

// heldPrefix begins the ids of an evaluation's groups and episodes in the index. Those of a step have the same ids in
// the record.
const heldPrefix = partEvaluation + "/"

func (e entry) part() string {
	if e.held {
		return partEvaluation
	}
	return partTraining
}

// trajectory is the entry's name in the index.
func (e entry) trajectory() string {
	return e.id(cmp.Or(e.Trajectory.TrajectoryID, e.Selection.TrajectoryID))
}

func problem(e entry) driver.Value {
	if e.Prompt.GroupID == "" { // the step has no such prompt
		return nil
	}
	return text(e.Prompt.Problem)
}

func success(e entry) driver.Value {
	switch {
	case e.Held != nil:
		return e.Held.Success
	case e.Reward != nil:
		return e.Reward.Success
	}
	return nil
}

func greedy(e entry) driver.Value {
	if e.Held == nil {
		return nil
	}
	return e.Held.Greedy
}

// fate is what became of a trajectory: whether the update learnt from it, and why not; of an evaluation, whether it is
// solved.
func (e entry) fate() string {
	s := e.selected()
	switch {
	case e.Held != nil && e.Held.Success:
		return "solved"
	case e.Held != nil:
		return "not solved"
	case e.held:
		return "excluded"
	case s == nil:
		return "undecided"
	case s.Kept && s.Masked != nil:
		return "masked: " + *s.Masked
	case s.Kept:
		return keptFate
	}
	return s.Reason
}

// keptFate is the fate of a trajectory that the update learnt from.
const keptFate = "kept"

// excluded is what broke a trajectory.
func (e entry) excluded() *string { return cmp.Or(e.Trajectory.Excluded, e.Selection.Excluded) }

func orNull(s *string) driver.Value {
	if s == nil {
		return nil
	}
	return text(*s)
}

// text is a text as the index takes it: its own bytes, which the index only reads. DuckDB's driver copies a string
// before DuckDB copies it again, and most of a row is text.
func text(s string) driver.Value { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// statuses are the statuses of a trajectory's calls. DuckDB's driver takes a list of any values as it is, and others
// by reflection.
func statuses(e entry) driver.Value {
	out := make([]any, len(e.Calls))
	for i, c := range e.Calls {
		out[i] = c.Status
	}
	return out
}

// tableColumns are the columns of the index as its table has them.
func tableColumns() []sql.IndexColumn {
	out := make([]sql.IndexColumn, len(columns))
	for i, c := range columns {
		out[i] = sql.IndexColumn{Name: c.Name, Type: c.Type}
	}
	return out
}

// isColumn reports whether the index has a column of this name.
func isColumn(name string) bool {
	return slices.ContainsFunc(columns, func(c Column) bool { return c.Name == name })
}
