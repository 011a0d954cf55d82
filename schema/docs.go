package schema

import (
	"reflect"
	"strconv"
	"strings"
)

// TableDoc describes a table for people who write a reader.
type TableDoc struct {
	Table   Table       `json:"table"`
	Format  string      `json:"format"` // parquet | arrow
	Doc     string      `json:"doc"`
	Since   int         `json:"since"`   // the minor version that added it
	Version int         `json:"version"` // the minor version in its shards' metadata
	Columns []ColumnDoc `json:"columns"`
}

// ColumnDoc describes a column.
type ColumnDoc struct {
	Name     string `json:"name"`
	Type     string `json:"type"` // Arrow's name
	Nullable bool   `json:"nullable"`
	Unit     string `json:"unit,omitempty"`
	Since    int    `json:"since"` // the minor version that added it
	Doc      string `json:"doc"`
}

// described is what a table is for, the minor version that added it, and the one that last changed its columns.
type described struct {
	table          Table
	since, changed int
	doc            string
}

// descriptions describes every table of rows, in the order of the specification.
var descriptions = []described{
	{Prompts, 1, 8, "the prompts of a step, one row each"},
	{Turns, 1, 9, "the turns of a step's trajectories, with their tokens. The turn at which an engine broke has only " +
		"a context"},
	{Branches, 8, 8, "the turns of trees of samples: where trajectories branch, and why. Only runs with rollout.tree " +
		"have the table. A branch has no rows of the turns that it shares with its parent in turns, tool_calls and " +
		"transitions"},
	{ToolCalls, 1, 4, "the tool calls of the turns, and what they answered"},
	{Transitions, 4, 4, "the actions in an interactive environment, and what they led to. Only runs in such an " +
		"environment have the table, and they have no tool_calls"},
	{Trajectories, 1, 6, "the episodes, one row each"},
	{Imported, 5, 6, "the episodes of an import as the file holds them, before their recorded calls are counted. " +
		"trajectories then has the complete rows; this table is read only to make them"},
	{Gradings, 3, 4, "symbolic comparisons of answers, where the recipe asks for them and comparing strings and " +
		"values found no agreement"},
	{Judgements, 8, 8, "a language model's judgements of answers, where the recipe asks a judge and the reward " +
		"depends on it"},
	{FunctionScores, 8, 8, "results of the user's reward function, where the recipe's reward is one"},
	{Rewards, 1, 4, "the rewards, a row for each trajectory that was not excluded"},
	{Selection, 1, 4, "what became of every sampled trajectory, also in skipped shards: kept, how often, and why " +
		"not. The stage reward commits rows of this table only for trajectories without a reward; read those " +
		"of resample"},
	{TokenOutputs, 3, 9, "what models compute for the tokens of kept trajectories that are not masked, if the recipe " +
		"needs it"},
	{Behaviour, 8, 9, "what the trainer gives for the tokens of kept trajectories under the version that sampled " +
		"them. Only pipelined runs whose rollouts come from inference servers have the table"},
	{Batch, 1, 4, "the training batch: a row for each trajectory, or for each turn in layout turns"},
	{Replay, 3, 4, "the replay buffer after the step"},
	{Baselines, 3, 4, "the queue of the latest mean rewards after the step, one row for each group"},
	{ReplayBatch, 3, 4, "the rows of the replay buffer that the step learns from again, with the columns of batch"},
	{Updates, 1, 8, "the optimiser steps of an update. Rows with the same optimizer_step are one step on rows of two " +
		"sources"},
	{Evaluations, 1, 8, "the episodes on held-out problems, one row each"},
	{EvaluationPrompts, 5, 8, "the held-out problems of an evaluation, with the columns of prompts"},
	{EvaluationTurns, 5, 9, "the turns of its episodes, with the columns of turns"},
	{EvaluationToolCalls, 5, 5, "their tool calls, with the columns of tool_calls"},
	{EvaluationTransitions, 5, 5, "their actions, with the columns of transitions"},
	{EvaluationTrajectories, 5, 6, "the episodes, with the columns of trajectories"},
	{EvaluationJudgements, 8, 8, "a judge's verdicts on the answers of its episodes, with the columns of judgements"},
	{EvaluationDebates, 8, 8, "the proposals of agents that debated the answers or the actions of an evaluation, one " +
		"row each"},
	{Tasks, 7, 8, "the training tasks of the environment's files, one row each, where the recipe filters them: which " +
		"the run draws, and why not the others"},
	{TaskAnswers, 8, 8, "the answers of a given model to training tasks, one row each, where the recipe filters the " +
		"tasks by their difficulty"},
	{Timings, 1, 9, "measured times. No stage reads them"},
}

func describedAs(table Table) described {
	for _, d := range descriptions {
		if d.table == table {
			return d
		}
	}
	return described{}
}

// TableDocs describes every table of rows.
func TableDocs() []TableDoc {
	out := make([]TableDoc, len(descriptions))
	for i, d := range descriptions {
		format := "parquet"
		if d.table.Ext() == "arrow" {
			format = "arrow"
		}
		out[i] = TableDoc{Table: d.table, Format: format, Doc: d.doc, Since: d.since, Version: versionOf(d.table),
			Columns: Columns(d.table)}
	}
	return out
}

// Columns describes the columns of a table of rows, in their order in its shards; nil for any other table.
func Columns(table Table) []ColumnDoc {
	row := RowType(table)
	if table == Batch || table == ReplayBatch {
		row = reflect.TypeFor[BatchRow]()
	}
	if row == nil {
		return nil
	}
	out := make([]ColumnDoc, row.NumField())
	for i := range out {
		out[i] = columnDoc(row.Field(i), describedAs(table).since)
	}
	return out
}

// arrowNames are Arrow's names of the types of fields.
var arrowNames = map[string]string{
	"string": "string", "bool": "bool", "int32": "int32", "int64": "int64", "float64": "double",
	"[]int32": "list<int32>", "[]float32": "list<float>",
}

func columnDoc(f reflect.StructField, since int) ColumnDoc {
	out := ColumnDoc{
		Name: fieldName(f), Type: arrowNames[strings.TrimPrefix(f.Type.String(), "*")], Nullable: nullable(f),
		Unit: f.Tag.Get("unit"), Since: since, Doc: f.Tag.Get("doc"),
	}
	if f.Tag.Get("holes") != "" {
		out.Type = "list<float?>"
	}
	if n, err := strconv.Atoi(f.Tag.Get("since")); err == nil {
		out.Since = max(since, n)
	}
	return out
}

func nullable(f reflect.StructField) bool {
	tag, ok := f.Tag.Lookup("parquet")
	if !ok {
		return batchSchema().Field(f.Index[0]).Nullable
	}
	_, options, _ := strings.Cut(tag, ",")
	return strings.Contains(","+options+",", ",optional,")
}
