package schema

import "fmt"

// Version is the schema version that this code writes. It grows when a nullable column is added:
// 2 added excluded to turns, tool_calls, trajectories and selection; source_reward, messages and
// item to trajectories; the clip fractions by sign to updates. 3 added the table token_outputs;
// rollout_logprobs and reference_logprobs to batch; reference_kl to updates; the tables gradings, replay,
// baselines and replay_batch; source, the statistics of the critic and of the advantages, and the shares
// of ratios out of bounds where no clip acts to updates. 4 added to timings what the stage used of devices.
const Version = 4

// Table names a kind of shard.
type Table string

// The tables of rows. All are Parquet but Batch and ReplayBatch, which are Arrow IPC files.
const (
	Prompts      Table = "prompts"
	Trajectories Table = "trajectories"
	Turns        Table = "turns"
	ToolCalls    Table = "tool_calls"
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
)

// Documents are shards that hold one JSON document instead of rows (a resolved recipe, a ledger).
const Documents Table = "documents"

// Tables lists the Parquet tables in the order in which a step fills them.
func Tables() []Table {
	return []Table{Prompts, Turns, ToolCalls, Trajectories, Gradings, Rewards, Selection, TokenOutputs, Replay, Baselines, Updates, Evaluations, Timings}
}

// Ext is the file name extension of the table's shards.
func (t Table) Ext() string {
	switch t {
	case Batch, ReplayBatch:
		return "arrow"
	case Documents:
		return "json"
	}
	return "parquet"
}

// Valid reports whether t names one of the record's tables.
func (t Table) Valid() error {
	switch t {
	case Prompts, Trajectories, Turns, ToolCalls, Gradings, Rewards, Selection, TokenOutputs, Replay, Baselines, Updates, Evaluations, Timings, Batch, ReplayBatch, Documents:
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
	PromptRow | TurnRow | ToolCallRow | TrajectoryRow | GradingRow | RewardRow | SelectionRow | TokenOutputsRow | ReplayRow | BaselineRow | UpdateRow | EvaluationRow | TimingRow
	// Validate checks the row's own invariants; the error starts with the field at fault.
	Validate() error
	// Table is the table that the row belongs to.
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
func (TimingRow) Table() Table { return Timings }
