package schema

import "fmt"

// Audit checks that every row is valid and that the rows are in canonical order without repetition. The error names the
// table, the row and the field.
func Audit[R Row](rows []R) error {
	table := TableOf[R]()
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			return fmt.Errorf("table %s row %d (%s): %w", table, i, rows[i].Position(), err)
		}
	}
	return checkOrder(table, len(rows), func(i int) Position { return rows[i].Position() })
}

// auditBatch is Audit for a table of batch rows.
func auditBatch(table Table, rows []BatchRow) error {
	for i := range rows {
		if err := rows[i].Validate(); err != nil {
			return fmt.Errorf("table %s row %d (%s): %w", table, i, rows[i].Position(), err)
		}
	}
	return checkOrder(table, len(rows), func(i int) Position { return rows[i].Position() })
}

// AuditShard decodes a shard and checks its table, its row count and every row. A shard of
// Documents must be canonical JSON and counts as one row.
func AuditShard(table Table, data []byte, rows int) error {
	got, err := auditAs(table, data)
	if err != nil {
		return err
	}
	if got != rows {
		return fmt.Errorf("table %s: holds %d rows, but its manifest says %d", table, got, rows)
	}
	return nil
}

func auditAs(table Table, data []byte) (int, error) {
	if k, ok := kindOf(table); ok {
		return k.audit(data)
	}
	switch table {
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

func (k *rowsOf[R, F]) audit(data []byte) (int, error) {
	rows, err := Decode[R](data)
	if err != nil {
		return 0, err
	}
	return len(rows), Audit(rows)
}
