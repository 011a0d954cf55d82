package schema

import "fmt"

// Audit checks that every row is valid and that the rows stand in canonical order without
// repetition. The error names the table, the row and the field.
func Audit[R Row](rows []R) error {
	table := TableOf[R]()
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			return fmt.Errorf("table %s row %d (%s): %w", table, i, rows[i].position(), err)
		}
	}
	return checkOrder(table, len(rows), func(i int) position { return rows[i].position() })
}

// AuditBatch is Audit for the training batch.
func AuditBatch(rows []BatchRow) error { return auditBatch(Batch, rows) }

func auditBatch(table Table, rows []BatchRow) error {
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			return fmt.Errorf("table %s row %d (%s): %w", table, i, rows[i].position(), err)
		}
	}
	return checkOrder(table, len(rows), func(i int) position { return rows[i].position() })
}

// AuditShard decodes a shard and checks its table, its row count and every row. A shard of
// Documents must be canonical JSON and counts as one row.
func AuditShard(table Table, data []byte, rows int) error {
	got, err := auditAs(table, data)
	if err != nil {
		return err
	}
	if got != rows {
		return fmt.Errorf("table %s: holds %d rows where its manifest says %d", table, got, rows)
	}
	return nil
}

func auditAs(table Table, data []byte) (int, error) {
	switch table {
	case Prompts:
		return auditRows[PromptRow](data)
	case Trajectories:
		return auditRows[TrajectoryRow](data)
	case Turns:
		return auditRows[TurnRow](data)
	case ToolCalls:
		return auditRows[ToolCallRow](data)
	case Gradings:
		return auditRows[GradingRow](data)
	case Rewards:
		return auditRows[RewardRow](data)
	case Selection:
		return auditRows[SelectionRow](data)
	case TokenOutputs:
		return auditRows[TokenOutputsRow](data)
	case Replay:
		return auditRows[ReplayRow](data)
	case Baselines:
		return auditRows[BaselineRow](data)
	case Updates:
		return auditRows[UpdateRow](data)
	case Evaluations:
		return auditRows[EvaluationRow](data)
	case Timings:
		return auditRows[TimingRow](data)
	case Batch, ReplayBatch:
		rows, err := decodeBatch(table, data)
		if err != nil {
			return 0, err
		}
		return len(rows), auditBatch(table, rows)
	case Documents:
		return 1, checkCanonical(data)
	}
	return 0, table.Valid()
}

func auditRows[R Row](data []byte) (int, error) {
	rows, err := Decode[R](data)
	if err != nil {
		return 0, err
	}
	return len(rows), Audit(rows)
}
