package sql

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"strings"

	"github.com/ropewalk/ropewalk/analysis"
	"github.com/ropewalk/ropewalk/schema"
)

// The shards of batches are Arrow files, which DuckDB does not read without an extension. Their rows become a table in
// memory.

// columnTypes are DuckDB's names of the types of a batch's columns.
var columnTypes = map[string]string{"string": "VARCHAR", "int32": "INTEGER", "double": "DOUBLE",
	"list<int32>": "INTEGER[]", "list<float>": "FLOAT[]"}

// createBatches makes the table batch or replay_batch. Unless the query names it, it has no rows.
func createBatches(ctx context.Context, conn *sql.Conn, table schema.Table, runs []*analysis.Visible,
	wanted bool) error {
	declared := []string{"run VARCHAR", "step INTEGER", "gen INTEGER"}
	for _, c := range schema.Columns(table) {
		declared = append(declared, fmt.Sprintf("%q %s", c.Name, columnTypes[c.Type]))
	}
	if _, err := conn.ExecContext(ctx, fmt.Sprintf("CREATE TABLE %s (%s)", table,
		strings.Join(declared, ", "))); err != nil || !wanted {
		return err
	}
	return appendRows(conn, string(table), func(put func(row []driver.Value) error) error {
		for _, run := range runs {
			if err := putBatches(ctx, put, table, run); err != nil {
				return err
			}
		}
		return nil
	})
}

// putBatches puts the rows of a run, one shard at a time.
func putBatches(ctx context.Context, put func(row []driver.Value) error, table schema.Table,
	run *analysis.Visible) error {
	shards, err := run.Shards(ctx, table)
	if err != nil {
		return err
	}
	decode := schema.DecodeBatch
	if table == schema.ReplayBatch {
		decode = schema.DecodeReplayBatch
	}
	for _, s := range shards {
		data, err := run.Bytes(ctx, s)
		if err != nil {
			return err
		}
		rows, err := decode(data)
		if err != nil {
			return fmt.Errorf("%s: %w", s.Key, err)
		}
		for _, r := range rows {
			var turn driver.Value
			if r.Turn != nil {
				turn = *r.Turn
			}
			if err := put([]driver.Value{s.Run, step(s), int32(s.Gen), r.GroupID, r.TrajectoryID, r.Count, r.Weight,
				r.TokenIDs, r.LossMask, listOrNull(r.OldLogProbs), r.Advantages, listOrNull(r.RolloutLogProbs),
				listOrNull(r.ReferenceLogProbs), turn, listOrNull(r.Values), listOrNull(r.Returns)}); err != nil {
				return fmt.Errorf("fill table %s with %s: %w", table, s.Key, err)
			}
		}
	}
	return nil
}

// listOrNull is null for a list that the record does not have.
func listOrNull(list []float32) driver.Value {
	if list == nil {
		return nil
	}
	return list
}
