package schema

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/apache/arrow/go/v17/arrow"
	"github.com/apache/arrow/go/v17/arrow/array"
	"github.com/apache/arrow/go/v17/arrow/ipc"
	"github.com/apache/arrow/go/v17/arrow/memory"
)

// batchSchema returns the schema of the training batch; batchSchemaOf that of another table of such rows. Every column
// is required, except log-probabilities, which are null if there are none or nothing needs them. The elements of lists
// are never null. A column that a later version adds is nullable and comes last.
func batchSchema() *arrow.Schema { return batchSchemaOf(Batch) }

func batchSchemaOf(table Table) *arrow.Schema {
	meta := arrow.NewMetadata([]string{metaTable, metaVersion, metaSeal}, []string{string(table),
		strconv.Itoa(versionOf(table)), sealMark + sealDigits})
	ints := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Int32)
	floats := arrow.ListOfNonNullable(arrow.PrimitiveTypes.Float32)
	return arrow.NewSchema([]arrow.Field{
		{Name: "group_id", Type: arrow.BinaryTypes.String},
		{Name: "trajectory_id", Type: arrow.BinaryTypes.String},
		{Name: "count", Type: arrow.PrimitiveTypes.Int32},
		{Name: "weight", Type: arrow.PrimitiveTypes.Float64},
		{Name: "token_ids", Type: ints},
		{Name: "loss_mask", Type: ints},
		{Name: "old_logprobs", Type: floats, Nullable: true},
		{Name: "advantages", Type: floats},
		{Name: "rollout_logprobs", Type: floats, Nullable: true},
		{Name: "reference_logprobs", Type: floats, Nullable: true},
		{Name: "turn", Type: arrow.PrimitiveTypes.Int32, Nullable: true},
		{Name: "values", Type: floats, Nullable: true},
		{Name: "returns", Type: floats, Nullable: true},
	}, &meta)
}

// EncodeBatch writes the training batch as one Arrow IPC file (zstd). The rows must be valid and
// in canonical order (SortBatch). Equal rows give equal bytes.
func EncodeBatch(rows []BatchRow) ([]byte, error) {
	return encodeBatch(Batch, rows, rowGroupBytes)
}

// EncodeReplayBatch is EncodeBatch for the rows of the replay buffer that are learnt from again.
func EncodeReplayBatch(rows []BatchRow) ([]byte, error) {
	return encodeBatch(ReplayBatch, rows, rowGroupBytes)
}

func encodeBatch(table Table, rows []BatchRow, batchBytes int) ([]byte, error) {
	if err := auditBatch(table, rows); err != nil {
		return nil, err
	}
	s := batchSchemaOf(table)
	var out buffer
	w, err := ipc.NewFileWriter(&out, ipc.WithSchema(s), ipc.WithZstd(), ipc.WithAllocator(memory.NewGoAllocator()))
	if err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	for start := 0; start < len(rows); {
		end := batchEnd(rows, start, batchBytes)
		if err := writeRecord(w, s, rows[start:end]); err != nil {
			return nil, fmt.Errorf("encode table %s rows %d–%d: %w", table, start, end-1, err)
		}
		start = end
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	if err := seal(out.data); err != nil {
		return nil, fmt.Errorf("encode table %s: %w", table, err)
	}
	return out.data, nil
}

// batchEnd returns the end of the record batch that begins at start, by the rule of groupEnd.
func batchEnd(rows []BatchRow, start, bound int) int {
	size := 0
	for end := start; end < len(rows); end++ {
		r := &rows[end]
		// The entries of all lists take 4 bytes.
		size += 64 + 16*len(r.TokenIDs)
		size += 4 * (len(r.RolloutLogProbs) + len(r.ReferenceLogProbs) + len(r.Values) + len(r.Returns))
		if size > bound && end > start {
			return end
		}
	}
	return len(rows)
}

func writeRecord(w *ipc.FileWriter, s *arrow.Schema, rows []BatchRow) error {
	b := array.NewRecordBuilder(memory.NewGoAllocator(), s)
	defer b.Release()
	for i := range rows {
		r := &rows[i]
		b.Field(0).(*array.StringBuilder).Append(r.GroupID)
		b.Field(1).(*array.StringBuilder).Append(r.TrajectoryID)
		b.Field(2).(*array.Int32Builder).Append(r.Count)
		b.Field(3).(*array.Float64Builder).Append(r.Weight)
		appendInts(b.Field(4), r.TokenIDs)
		appendInts(b.Field(5), r.LossMask)
		appendNullable(b.Field(6), r.OldLogProbs)
		appendFloats(b.Field(7), r.Advantages)
		appendNullable(b.Field(8), r.RolloutLogProbs)
		appendNullable(b.Field(9), r.ReferenceLogProbs)
		if r.Turn == nil {
			b.Field(10).AppendNull()
		} else {
			b.Field(10).(*array.Int32Builder).Append(*r.Turn)
		}
		appendNullable(b.Field(11), r.Values)
		appendNullable(b.Field(12), r.Returns)
	}
	record := b.NewRecord()
	defer record.Release()
	return w.Write(record)
}

func appendInts(b array.Builder, xs []int32) {
	l := b.(*array.ListBuilder)
	l.Append(true)
	l.ValueBuilder().(*array.Int32Builder).AppendValues(xs, nil)
}

func appendFloats(b array.Builder, xs []float32) {
	l := b.(*array.ListBuilder)
	l.Append(true)
	l.ValueBuilder().(*array.Float32Builder).AppendValues(xs, nil)
}

func appendNullable(b array.Builder, xs []float32) {
	if xs == nil {
		b.AppendNull()
		return
	}
	appendFloats(b, xs)
}

// DecodeBatch reads a training batch, with the guarantees of Decode.
func DecodeBatch(data []byte) ([]BatchRow, error) { return decodeBatch(Batch, data) }

// DecodeReplayBatch reads a replay batch, with the guarantees of Decode.
func DecodeReplayBatch(data []byte) ([]BatchRow, error) { return decodeBatch(ReplayBatch, data) }

func decodeBatch(table Table, data []byte) (rows []BatchRow, err error) {
	defer recovered(table, &err)
	if err := checkSeal(data); err != nil {
		return nil, corrupt(table, err)
	}
	r, err := ipc.NewFileReader(bytes.NewReader(data))
	if err != nil {
		return nil, corrupt(table, err)
	}
	defer func() { err = errors.Join(err, closing(table, r)) }()
	if err := checkBatchSchema(table, r.Schema()); err != nil {
		return nil, err
	}
	rows = []BatchRow{}
	for i := range r.NumRecords() {
		record, err := r.Record(i)
		if err != nil {
			return nil, corrupt(table, fmt.Errorf("read record batch %d: %w", i, err))
		}
		if rows, err = appendRecord(rows, record); err != nil {
			return nil, corrupt(table, fmt.Errorf("record batch %d: %w", i, err))
		}
	}
	return rows, nil
}

func checkBatchSchema(table Table, s *arrow.Schema) error {
	name, _ := s.Metadata().GetValue(metaTable)
	version, _ := s.Metadata().GetValue(metaVersion)
	file, err := checkMeta(table, name, version)
	if err != nil {
		return err
	}
	fields := batchSchema().Fields()
	for i, want := range fields {
		got, ok := s.FieldsByName(want.Name)
		switch {
		case !ok && want.Nullable && i >= s.NumFields(): // an earlier version did not have it
		case !ok:
			return fmt.Errorf("decode table %s: column %s is missing", table, want.Name)
		case !arrow.TypeEqual(got[0].Type, want.Type):
			return fmt.Errorf("decode table %s: column %s is %s, want %s", table, want.Name, got[0].Type, want.Type)
		}
	}
	sameName := func(a, b arrow.Field) bool { return a.Name == b.Name }
	have := s.Fields()
	if file.newer() { // what a later version has added comes last
		have = have[:min(len(have), len(fields))]
	}
	if !slices.EqualFunc(have, fields[:min(len(have), len(fields))], sameName) {
		return fmt.Errorf("decode table %s: columns are not those of schema version %d", table, Version)
	}
	return nil
}

// appendRecord copies a record batch's rows out of the reader's memory.
func appendRecord(rows []BatchRow, record arrow.Record) ([]BatchRow, error) {
	n := int(record.NumRows())
	for i := range int(record.NumCols()) {
		c := record.Column(i)
		if c.Len() != n {
			return nil, fmt.Errorf("column %s has %d rows of %d", record.ColumnName(i), c.Len(), n)
		}
		if i < len(batchSchema().Fields()) && c.NullN() > 0 && !batchSchema().Field(i).Nullable {
			return nil, fmt.Errorf("column %s holds nulls", record.ColumnName(i))
		}
	}
	group, trajectory := record.Column(0).(*array.String), record.Column(1).(*array.String)
	count, weight := record.Column(2).(*array.Int32), record.Column(3).(*array.Float64)
	for i := range n {
		rows = append(rows, BatchRow{
			GroupID:      string([]byte(group.Value(i))),
			TrajectoryID: string([]byte(trajectory.Value(i))),
			Count:        count.Value(i),
			Weight:       weight.Value(i),
			TokenIDs:     intsAt(record.Column(4), i),
			LossMask:     intsAt(record.Column(5), i),
			OldLogProbs:  floatsAt(record.Column(6), i),
			Advantages:   floatsAt(record.Column(7), i),

			RolloutLogProbs:   floatsFrom(record, 8, i),
			ReferenceLogProbs: floatsFrom(record, 9, i),
			Turn:              intFrom(record, 10, i),
			Values:            floatsFrom(record, 11, i),
			Returns:           floatsFrom(record, 12, i),
		})
	}
	return rows, nil
}

func intsAt(column arrow.Array, i int) []int32 {
	l := column.(*array.List)
	start, end := l.ValueOffsets(i)
	return append([]int32{}, l.ListValues().(*array.Int32).Int32Values()[start:end]...)
}

// floatsFrom is floatsAt for a column that is missing in files of earlier versions.
func floatsFrom(record arrow.Record, column, i int) []float32 {
	if column >= int(record.NumCols()) {
		return nil
	}
	return floatsAt(record.Column(column), i)
}

// intFrom reads a nullable number from a column that is missing in files of earlier versions.
func intFrom(record arrow.Record, column, i int) *int32 {
	if column >= int(record.NumCols()) || record.Column(column).IsNull(i) {
		return nil
	}
	return new(record.Column(column).(*array.Int32).Value(i))
}

func floatsAt(column arrow.Array, i int) []float32 {
	if column.IsNull(i) {
		return nil
	}
	l := column.(*array.List)
	start, end := l.ValueOffsets(i)
	return append([]float32{}, l.ListValues().(*array.Float32).Float32Values()[start:end]...)
}

// buffer is an in-memory file for the IPC writer, which asks for its position and never seeks backwards.
type buffer struct{ data []byte }

func (b *buffer) Write(p []byte) (int, error) {
	b.data = append(b.data, p...)
	return len(p), nil
}

func (b *buffer) Seek(offset int64, whence int) (int64, error) {
	if offset != 0 || whence == io.SeekStart {
		return 0, errors.New("buffer only appends")
	}
	return int64(len(b.data)), nil
}
