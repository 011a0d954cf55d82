package schema

import (
	"fmt"
	"reflect"
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
	about() *described
	row() reflect.Type
	empty() ([]byte, error)                      // a shard without rows
	audit(data []byte) (int, error)              // checks a shard and counts its rows
	first(data []byte, n int) ([][]Field, error) // a shard's first rows, as fields
	merge(shards [][]byte) ([]byte, int, error)
	equal(merged []byte, shards [][]byte) error
}

// kindOf returns what there is to do with a table's rows; ok is false for a table that is not Parquet, or that is not
// one of the record's.
func kindOf(t Table) (k kind, ok bool) {
	for _, d := range tables {
		if d.about().table == t {
			k, ok = d.(kind)
		}
	}
	return k, ok
}

// describedAs returns the description of a table of rows, or none.
func describedAs(t Table) described {
	for _, d := range tables {
		if d.about().table == t {
			return *d.about()
		}
	}
	return described{}
}

// Tables lists the Parquet tables in the order of the specification.
func Tables() []Table {
	var out []Table
	for _, d := range tables {
		if k, ok := d.(kind); ok {
			out = append(out, k.about().table)
		}
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

// rowOf is the type of a table's rows; nil of a table without rows.
func rowOf(t Table) reflect.Type {
	if t == Batch || t == ReplayBatch {
		return reflect.TypeFor[BatchRow]()
	}
	return RowType(t)
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

// Row is a row of a Parquet table. The table's entry in tables names the type.
type Row interface {
	// Validate checks the row's own invariants; the error starts with the field at fault.
	Validate() error
	// Position is the row's place in the table.
	Position() Position
}

// TableOf returns the table of a row type.
func TableOf[R Row]() Table { return declaredFor[R]().about().table }

// declared is the declaration of the table with rows of type R.
type declared[R Row] interface {
	kind
	write(rows []R, groupBytes int) ([]byte, error)
}

func declaredFor[R Row]() declared[R] {
	for _, t := range tables {
		if d, ok := t.(declared[R]); ok {
			return d
		}
	}
	panic("schema: the row type " + reflect.TypeFor[R]().String() + " has no table")
}
