package schema

import (
	"fmt"
	"reflect"
	"slices"
	"sync"
)

// Table names a kind of shard.
type Table string

// The tables of rows. Batch and ReplayBatch are Arrow IPC files; the others are Parquet files.
const (
	Prompts      Table = "prompts"
	Trajectories Table = "trajectories"
	Turns        Table = "turns"
	ToolCalls    Table = "tool_calls"
	Transitions  Table = "transitions"
	Gradings     Table = "gradings"
	Rewards      Table = "rewards"
	Selection    Table = "selection"
	TokenOutputs Table = "token_outputs"
	Replay       Table = "replay"
	Baselines    Table = "baselines"
	Updates      Table = "updates"
	Evaluations  Table = "evaluations"
	Timings      Table = "timings"
	Batch        Table = "batch"
	ReplayBatch  Table = "replay_batch"

	Behaviour              Table = "behaviour"
	Branches               Table = "branches"
	Judgements             Table = "judgements"
	FunctionScores         Table = "function_scores"
	EvaluationJudgements   Table = "evaluation_judgements"
	Tasks                  Table = "tasks"
	TaskAnswers            Table = "task_answers"
	Imported               Table = "imported"
	EvaluationPrompts      Table = "evaluation_prompts"
	EvaluationTurns        Table = "evaluation_turns"
	EvaluationToolCalls    Table = "evaluation_tool_calls"
	EvaluationTransitions  Table = "evaluation_transitions"
	EvaluationTrajectories Table = "evaluation_trajectories"
	EvaluationDebates      Table = "evaluation_debates"
)

// Documents are shards that hold one JSON document instead of rows (a resolved recipe, a ledger).
const Documents Table = "documents"

// kind is what there is to do with the shards of a Parquet table, whichever rows it has.
type kind interface {
	table() Table
	row() reflect.Type
	empty() ([]byte, error)                      // a shard without rows
	audit(data []byte) (int, error)              // checks a shard and counts its rows
	first(data []byte, n int) ([][]Field, error) // a shard's first rows, as fields
	merge(shards [][]byte) ([]byte, int, error)
	equal(merged []byte, shards [][]byte) error
}

// rowsOf is the kind of the table with rows of type R. F is R, or R with pointers as the elements of its lists with
// holes.
type rowsOf[R Row, F any] struct{ writers sync.Pool }

func (k *rowsOf[R, F]) table() Table           { return TableOf[R]() }
func (k *rowsOf[R, F]) row() reflect.Type      { return reflect.TypeFor[R]() }
func (k *rowsOf[R, F]) empty() ([]byte, error) { return Encode[R](nil) }

// kinds lists the Parquet tables in the order in which a step fills them. A table is its constant, its rows (rows.go),
// and a line here and in Row.
var kinds = []kind{
	&rowsOf[PromptRow, PromptRow]{}, &rowsOf[TurnRow, turn[*float32]]{}, &rowsOf[ToolCallRow, ToolCallRow]{},
	&rowsOf[TransitionRow, TransitionRow]{}, &rowsOf[TrajectoryRow, TrajectoryRow]{},
	&rowsOf[GradingRow, GradingRow]{}, &rowsOf[RewardRow, RewardRow]{}, &rowsOf[SelectionRow, SelectionRow]{},
	&rowsOf[TokenOutputsRow, tokenOutputs[*float32]]{}, &rowsOf[ReplayRow, ReplayRow]{},
	&rowsOf[BaselineRow, BaselineRow]{}, &rowsOf[UpdateRow, UpdateRow]{}, &rowsOf[EvaluationRow, EvaluationRow]{},
	&rowsOf[TimingRow, TimingRow]{}, &rowsOf[TaskRow, TaskRow]{}, &rowsOf[ImportedRow, ImportedRow]{},
	&rowsOf[TaskAnswerRow, TaskAnswerRow]{}, &rowsOf[EvaluationPromptRow, EvaluationPromptRow]{},
	&rowsOf[EvaluationTurnRow, turn[*float32]]{}, &rowsOf[EvaluationCallRow, EvaluationCallRow]{},
	&rowsOf[EvaluationTransitionRow, EvaluationTransitionRow]{},
	&rowsOf[EvaluationTrajectoryRow, EvaluationTrajectoryRow]{}, &rowsOf[JudgementRow, JudgementRow]{},
	&rowsOf[EvaluationJudgementRow, EvaluationJudgementRow]{}, &rowsOf[EvaluationDebateRow, EvaluationDebateRow]{},
	&rowsOf[FunctionScoreRow, FunctionScoreRow]{}, &rowsOf[BranchRow, BranchRow]{},
	&rowsOf[BehaviourRow, behaviour[*float32]]{},
}

// kindOf returns what there is to do with a table's rows; ok is false for a table that is not Parquet, or that is not
// one of the record's.
func kindOf(t Table) (k kind, ok bool) {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.table() == t })
	if i < 0 {
		return nil, false
	}
	return kinds[i], true
}

// Tables lists the Parquet tables in the order in which a step fills them.
func Tables() []Table {
	out := make([]Table, len(kinds))
	for i, k := range kinds {
		out[i] = k.table()
	}
	return out
}

// RowType is the type of a Parquet table's rows; nil of any other.
func RowType(t Table) reflect.Type {
	if k, ok := kindOf(t); ok {
		return k.row()
	}
	return nil
}

// EncodeEmpty returns a shard of a Parquet table that has no rows.
func EncodeEmpty(t Table) ([]byte, error) {
	k, ok := kindOf(t)
	if !ok {
		return nil, fmt.Errorf("table %q: has no Parquet shards", string(t))
	}
	return k.empty()
}

// Ext returns the file name extension of the table's shards.
func (t Table) Ext() string {
	switch t {
	case Batch, ReplayBatch:
		return "arrow"
	case Documents:
		return "json"
	}
	return "parquet"
}

// Valid returns an error unless t names one of the record's tables.
func (t Table) Valid() error {
	if _, ok := kindOf(t); ok || t == Batch || t == ReplayBatch || t == Documents {
		return nil
	}
	return fmt.Errorf("table %q: is not one of the record's tables", string(t))
}

// Keys of a file's metadata.
const (
	metaTable   = "ropewalk.table"
	metaVersion = "ropewalk.schema_version"
)

// Row is any row type of a Parquet table.
type Row interface {
	PromptRow | TurnRow | ToolCallRow | TransitionRow | TrajectoryRow | GradingRow | RewardRow | SelectionRow |
		TokenOutputsRow | ReplayRow | BaselineRow | UpdateRow | EvaluationRow | TimingRow | TaskRow | TaskAnswerRow |
		ImportedRow | EvaluationPromptRow | EvaluationTurnRow | EvaluationCallRow | EvaluationTransitionRow |
		EvaluationTrajectoryRow | JudgementRow | EvaluationJudgementRow | EvaluationDebateRow |
		FunctionScoreRow | BranchRow | BehaviourRow
	// Validate checks the row's own invariants; the error starts with the field at fault.
	Validate() error
	// Table returns the table that the row belongs to.
	Table() Table

	position() position
}

// TableOf returns the table of a row type.
func TableOf[R Row]() Table {
	var r R
	return r.Table()
}

// Table implements Row.
func (PromptRow) Table() Table { return Prompts }

// Table implements Row.
func (TurnRow) Table() Table { return Turns }

// Table implements Row.
func (ToolCallRow) Table() Table { return ToolCalls }

// Table implements Row.
func (TransitionRow) Table() Table { return Transitions }

// Table implements Row.
func (TrajectoryRow) Table() Table { return Trajectories }

// Table implements Row.
func (GradingRow) Table() Table { return Gradings }

// Table implements Row.
func (RewardRow) Table() Table { return Rewards }

// Table implements Row.
func (SelectionRow) Table() Table { return Selection }

// Table implements Row.
func (TokenOutputsRow) Table() Table { return TokenOutputs }

// Table implements Row.
func (ReplayRow) Table() Table { return Replay }

// Table implements Row.
func (BaselineRow) Table() Table { return Baselines }

// Table implements Row.
func (UpdateRow) Table() Table { return Updates }

// Table implements Row.
func (EvaluationRow) Table() Table { return Evaluations }

// Table implements Row.
func (EvaluationDebateRow) Table() Table { return EvaluationDebates }

// Table implements Row.
func (TimingRow) Table() Table { return Timings }
