package view

import (
	"cmp"
	"database/sql/driver"
	"slices"
	"strings"
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

// value is what a column holds of a trajectory of a step.
type value func(step int, o *analysis.Outcome) driver.Value

// Columns are the columns of the index, in their order.
func Columns() []Column { return slices.Clone(columns) }

var columns = []Column{
	{"part", "text", "training, or evaluation for an episode on a held-out task",
		func(_ int, o *analysis.Outcome) driver.Value { return text(partOf(o)) }},
	{"step", "integer", "the step that sampled it; 0 for the evaluation before the first step",
		func(step int, _ *analysis.Outcome) driver.Value { return int32(max(step, 0)) }},
	{"group_id", "text", "the group: the trajectories of one prompt",
		func(_ int, o *analysis.Outcome) driver.Value { return text(o.GroupID) }},
	{"trajectory_id", "text", "the trajectory",
		func(_ int, o *analysis.Outcome) driver.Value { return text(o.TrajectoryID) }},
	{"problem_id", "text", "the problem",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.ProblemID) })},
	{"level", "integer", "the problem's level", sampled(func(t *schema.TrajectoryRow) driver.Value { return t.Level })},
	{"problem", "text", "what was asked",
		func(_ int, o *analysis.Outcome) driver.Value { return orNull(o.Problem) }},
	{"gold", "text", "the right answer", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Gold) })},
	{"answer", "text", "the final answer; null without one", sampled(answer)},
	{"reward", "double", "the reward; null for an excluded trajectory",
		scored(func(r *schema.RewardRow) driver.Value { return r.Reward })},
	{"outcome", "double", "the part of the reward that judges the answer",
		scored(func(r *schema.RewardRow) driver.Value { return r.Outcome })},
	{"success", "boolean", "whether the answer is right",
		func(_ int, o *analysis.Outcome) driver.Value { return success(o) }},
	{"greedy", "boolean", "whether the likeliest response was taken; null in training",
		func(_ int, o *analysis.Outcome) driver.Value { return greedy(o) }},
	{"verdict", "text", "how the answer compared with the gold answer",
		scored(func(r *schema.RewardRow) driver.Value { return text(r.Verdict) })},
	{"fate", "text", "kept, masked: REASON, the reason why it was dropped, or undecided; of an evaluation solved, " +
		"not solved or excluded",
		func(_ int, o *analysis.Outcome) driver.Value { return text(fate(o)) }},
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
		func(_ int, o *analysis.Outcome) driver.Value { return statuses(o) }},
	{"tokens", "integer", "all tokens", sampled(func(t *schema.TrajectoryRow) driver.Value { return t.Tokens })},
	{"response_tokens", "integer", "tokens that the policy wrote",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return t.ResponseTokens })},
	{"finish", "text", "how it ended", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Finish) })},
	{"source", "text", "rollout, or what it was imported from",
		sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Source) })},
	{"excluded", "text", "what broke; null for a whole trajectory",
		func(_ int, o *analysis.Outcome) driver.Value { return orNull(excluded(o)) }},
	{"text", "text", "its whole text", sampled(func(t *schema.TrajectoryRow) driver.Value { return text(t.Text) })},
}

// sampled is a value of a trajectory's own row; null where its shard was skipped.
func sampled(of func(*schema.TrajectoryRow) driver.Value) value {
	return func(_ int, o *analysis.Outcome) driver.Value {
		if o.Trajectory == nil {
			return nil
		}
		return of(o.Trajectory)
	}
}

// scored is a value of a trajectory's reward; null without one.
func scored(of func(*schema.RewardRow) driver.Value) value {
	return func(_ int, o *analysis.Outcome) driver.Value {
		if o.Reward == nil {
			return nil
		}
		return of(o.Reward)
	}
}

// selected is a value of a trajectory's selection; null where the step selected nothing.
func selected(of func(*schema.SelectionRow) driver.Value) value {
	return func(_ int, o *analysis.Outcome) driver.Value {
		if o.Selection == nil {
			return nil
		}
		return of(o.Selection)
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

func partOf(o *analysis.Outcome) string {
	if strings.HasPrefix(o.TrajectoryID, heldPrefix) {
		return partEvaluation
	}
	return partTraining
}

func success(o *analysis.Outcome) driver.Value {
	switch {
	case o.Held != nil:
		return o.Held.Success
	case o.Reward != nil:
		return o.Reward.Success
	}
	return nil
}

func greedy(o *analysis.Outcome) driver.Value {
	if o.Held == nil {
		return nil
	}
	return o.Held.Greedy
}

// fate is what became of a trajectory: whether the update learnt from it, and why not; of an evaluation, whether it is
// solved.
func fate(o *analysis.Outcome) string {
	s := o.Selection
	switch {
	case o.Held != nil && o.Held.Success:
		return "solved"
	case o.Held != nil:
		return "not solved"
	case partOf(o) == partEvaluation:
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
func excluded(o *analysis.Outcome) *string {
	var found []*string
	if o.Trajectory != nil {
		found = append(found, o.Trajectory.Excluded)
	}
	if o.Selection != nil {
		found = append(found, o.Selection.Excluded)
	}
	return cmp.Or(found...)
}

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
func statuses(o *analysis.Outcome) driver.Value {
	out := make([]any, len(o.Statuses))
	for i, s := range o.Statuses {
		out[i] = s
	}
	return out
}

// values fills a row of the index, which holds the columns in their order.
func values(row []driver.Value, step int, o *analysis.Outcome) {
	for i, c := range columns {
		row[i] = c.value(step, o)
	}
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
