package schema

import (
	"reflect"
	"slices"

	"github.com/parquet-go/parquet-go"

	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// described says what a table is for, and the minor version that added it.
type described struct {
	table Table
	since int
	doc   string
}

func (d *described) about() *described { return d }

// rowsOf declares the table with rows of type R. F is R, or R with pointers as the elements of its lists with holes.
type rowsOf[R Row, F any] struct {
	described
	writers codec.Writers[R, F]
}

func (k *rowsOf[R, F]) row() reflect.Type { return reflect.TypeFor[R]() }
func (k *rowsOf[R, F]) write(rows []R, groupBytes int) ([]byte, error) {
	return k.writers.Write(rows, groupBytes, func() []parquet.WriterOption { return writerOptions[R](k.table) })
}
func (k *rowsOf[R, F]) empty() ([]byte, error) { return Encode[R](nil) }

// element is what a list with holes has as its elements: numbers in a row, and pointers in a file's row, where nil is
// null. The library writes a number that is 0 as null if numbers of its list can be.
type element interface{ float32 | *float32 }

func rows[R Row](table Table, since int, doc string) *rowsOf[R, R] {
	return rowsInFile[R, R](table, since, doc)
}

func rowsInFile[R Row, F any](table Table, since int, doc string) *rowsOf[R, F] {
	return &rowsOf[R, F]{described: described{table, since, doc}}
}

// tables declares every table of rows, in the order of the specification. A table is its constant, its row type
// (rows.go) and an entry here: the minor version that added the table, and what it is for.
var tables = []interface{ about() *described }{
	rows[PromptRow](Prompts, 1, "the prompts of a step, one row each"),
	rowsInFile[TurnRow, turn[*float32]](Turns, 1, "the turns of a step's trajectories, with their tokens. The turn "+
		"at which an engine broke has only a context"),
	rows[BranchRow](Branches, 8, "the turns of trees of samples: where trajectories branch, and why. Only runs with "+
		"rollout.tree have the table. A branch has no rows of the turns that it shares with its parent in turns, "+
		"tool_calls and transitions"),
	rows[ToolCallRow](ToolCalls, 1, "the tool calls of the turns, and what they answered"),
	rows[TransitionRow](Transitions, 4, "the actions in an interactive environment, and what they led to. Only runs "+
		"in such an environment have the table, and they have no tool_calls"),
	rows[TrajectoryRow](Trajectories, 1, "the episodes, one row each"),
	rows[ImportedRow](Imported, 5, "the episodes of an import as the file holds them, before their recorded calls "+
		"are counted. trajectories then has the complete rows; this table is read only to make them"),
	rows[GradingRow](Gradings, 3, "symbolic comparisons of answers, where the recipe asks for them and comparing "+
		"strings and values found no agreement"),
	rows[JudgementRow](Judgements, 8, "a language model's judgements of answers, where the recipe asks a judge and "+
		"the reward depends on it"),
	rows[FunctionScoreRow](FunctionScores, 8, "results of the user's reward function, where the recipe's reward is "+
		"one"),
	rows[RewardRow](Rewards, 1, "the rewards, a row for each trajectory that was not excluded"),
	rows[SelectionRow](Selection, 1, "what became of every sampled trajectory, also in skipped shards: kept, how "+
		"often, and why not. The stage reward commits rows of this table only for trajectories without a reward; "+
		"read those of resample"),
	rowsInFile[TokenOutputsRow, tokenOutputs[*float32]](TokenOutputs, 3, "what models compute for the tokens of kept "+
		"trajectories that are not masked, if the recipe needs it"),
	rowsInFile[BehaviourRow, behaviour[*float32]](Behaviour, 8, "what the trainer gives for the tokens of kept "+
		"trajectories under the version that sampled them. Only pipelined runs whose rollouts come from inference "+
		"servers have the table"),
	&described{Batch, 1, "the training batch: a row for each trajectory, or for each turn in layout turns"},
	rows[ReplayRow](Replay, 3, "the replay buffer after the step"),
	rows[BaselineRow](Baselines, 3, "the queue of the latest mean rewards after the step, one row for each group"),
	&described{ReplayBatch, 3, "the rows of the replay buffer that the step learns from again, with the columns of " +
		"batch"},
	rows[UpdateRow](Updates, 1, "the optimiser steps of an update. Rows with the same optimizer_step are one step on "+
		"rows of two sources"),
	rows[EvaluationRow](Evaluations, 1, "the episodes on held-out problems, one row each"),
	rows[EvaluationPromptRow](EvaluationPrompts, 5, "the held-out problems of an evaluation, with the columns of "+
		"prompts"),
	rowsInFile[EvaluationTurnRow, turn[*float32]](EvaluationTurns, 5, "the turns of its episodes, with the columns "+
		"of turns"),
	rows[EvaluationCallRow](EvaluationToolCalls, 5, "their tool calls, with the columns of tool_calls"),
	rows[EvaluationTransitionRow](EvaluationTransitions, 5, "their actions, with the columns of transitions"),
	rows[EvaluationTrajectoryRow](EvaluationTrajectories, 5, "the episodes, with the columns of trajectories"),
	rows[EvaluationJudgementRow](EvaluationJudgements, 8, "a judge's verdicts on the answers of its episodes, with "+
		"the columns of judgements"),
	rows[EvaluationDebateRow](EvaluationDebates, 8, "the proposals of agents that debated the answers or the actions "+
		"of an evaluation, one row each"),
	rows[TaskRow](Tasks, 7, "the training tasks of the environment's files, one row each, where the recipe filters "+
		"them: which the run draws, and why not the others"),
	rows[TaskAnswerRow](TaskAnswers, 8, "the answers of a given model to training tasks, one row each, where the "+
		"recipe filters the tasks by their difficulty"),
	rows[TimingRow](Timings, 1, "measured times. No stage reads them"),
}

// Declare adds a table with rows of type R to the record's until undo is called. A program declares its tables before
// anything reads or writes the record.
func Declare[R Row](table Table, since int, doc string) (undo func()) {
	before := tables
	tables = append(slices.Clip(tables), rows[R](table, since, doc))
	return func() { tables = before }
}
