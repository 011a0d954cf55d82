package schema

import (
	"bytes"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	codec "github.com/ropewalk/ropewalk/schema/parquet"
)

// TestTokensWithoutNumbersAreNull: elements of context tokens, and of tokens outside the loss mask, are null in a file,
// and 0 in the rows that are read. A token whose number is 0 keeps it.
func TestTokensWithoutNumbersAreNull(t *testing.T) {
	why := "x"
	turns := []TurnRow{
		{Turn: 0, ContextTokens: 2, TokenIDs: []int32{1, 2, 3, 4}, LossMask: []int32{0, 0, 1, 1},
			LogProbs: []float32{0, 0, 0, -1}, Entropies: []float32{0, 0, 0, 2}, Finish: "stop", PolicyVersion: "v"},
		{Turn: 1, ContextTokens: 1, TokenIDs: []int32{1}, LossMask: []int32{0}, LogProbs: []float32{0},
			Entropies: []float32{0}, PolicyVersion: "v", Excluded: &why},
		{Turn: 2, TokenIDs: []int32{}, LossMask: []int32{}, LogProbs: []float32{}, Entropies: []float32{},
			Finish: "stop", PolicyVersion: "v"},
		{Turn: 3, ContextTokens: 1, TokenIDs: []int32{1, 2}, LossMask: []int32{0, 1}, Finish: "stop"},
	}
	for i := range turns {
		turns[i].GroupID, turns[i].TrajectoryID = ids(0)
	}
	requireNumbers(t, turns, "logprobs.list.element", []float32{0, -1}, 7)
	requireNumbers(t, turns, "entropies.list.element", []float32{0, 2}, 7)
	outputs := []TokenOutputsRow{
		{LossMask: []int32{0, 1, 1, 0, 0, 1}, OldLogProbs: []float32{0, -1, 0, 0, 0, -2}, PolicyVersion: Digest(nil)},
		{LossMask: []int32{0, 0}, OldLogProbs: []float32{0, 0}, PolicyVersion: Digest(nil)},
		{LossMask: []int32{}, OldLogProbs: []float32{}, PolicyVersion: Digest(nil)},
		{LossMask: []int32{1}},
		{OldLogProbs: []float32{0, -3}, PolicyVersion: Digest(nil)}, // as earlier versions wrote it
	}
	for i := range outputs {
		outputs[i].GroupID, outputs[i].TrajectoryID = ids(i)
	}
	requireNumbers(t, outputs, "old_logprobs.list.element", []float32{-1, 0, -2, 0, -3}, 12)
	long := turns[:1:1]
	long[0].ContextTokens = 3000
	for range 8996 {
		long[0].TokenIDs = append(long[0].TokenIDs, 1)
	}
	long[0].LossMask, long[0].LogProbs, long[0].Entropies = make([]int32, 9000), make([]float32, 9000), nil
	want := make([]float32, 6000)
	for i := range want {
		want[i] = -float32(i)
		long[0].LogProbs[3000+i] = want[i]
	}
	requireNumbers(t, long, "logprobs.list.element", want, 9000)
}

// requireNumbers requires that a column of a file holds these numbers and entries, and that the rows are read back.
func requireNumbers[R Row](t *testing.T, rows []R, column string, want []float32, entries int) {
	t.Helper()
	data, err := Encode(rows)
	require.NoError(t, err)
	read, err := Decode[R](data)
	require.NoError(t, err)
	require.Equal(t, rows, read)
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	leaf, ok := file.Schema().Lookup(strings.Split(column, ".")...)
	require.True(t, ok)
	chunk := file.RowGroups()[0].ColumnChunks()[leaf.ColumnIndex]
	require.EqualValues(t, entries, chunk.NumValues())
	var got []float32
	pages := chunk.Pages()
	defer pages.Close()
	page, err := pages.ReadPage()
	require.NoError(t, err)
	values := make([]parquet.Value, entries)
	n, _ := page.Values().ReadValues(values)
	require.Equal(t, entries, n)
	for _, v := range values {
		if !v.IsNull() {
			got = append(got, v.Float())
		}
	}
	require.Equal(t, want, got)
}

// TestRowsOfFilesHaveTheFieldsOfRows checks what the codec assumes: rows and their form in a file differ in the
// elements of lists with holes alone.
func TestRowsOfFilesHaveTheFieldsOfRows(t *testing.T) {
	sameFields(t, TurnRow{}, turn[*float32]{})
	sameFields(t, EvaluationTurnRow{}, turn[*float32]{})
	sameFields(t, TokenOutputsRow{}, tokenOutputs[*float32]{})
	sameFields(t, BehaviourRow{}, behaviour[*float32]{})
	for _, k := range Tables() {
		row := RowType(k)
		for i := range row.NumField() {
			_, holes := row.Field(i).Tag.Lookup("holes")
			require.Equal(t, holes, codec.HolesOf(row, row.Field(i)).Any, row.Field(i).Name)
		}
	}
}

func sameFields(t *testing.T, row, file any) {
	a, b := reflect.TypeOf(row), reflect.TypeOf(file)
	require.Equal(t, a.Size(), b.Size())
	require.True(t, parquet.EqualNodes(parquet.SchemaOf(row), parquet.SchemaOf(file)), a)
	holes := 0
	for i := range a.NumField() {
		f, g := a.Field(i), b.Field(i)
		require.Equal(t, f.Offset, g.Offset, f.Name)
		if codec.HolesOf(a, f).Any {
			require.Equal(t, reflect.TypeFor[[]*float32](), g.Type, f.Name)
			holes++
		} else {
			require.Equal(t, f.Type, g.Type, f.Name)
		}
	}
	require.Positive(t, holes)
}

// TestReusedWritersWriteTheSame writes a large file of many row groups and then a small one with the same writer, and
// expects what a new writer gives.
func TestReusedWritersWriteTheSame(t *testing.T) {
	r := rand.New(rand.NewPCG(5, 6))
	reusedWriteTheSame(t, &rowsOf[TurnRow, turn[*float32]]{}, &rowsOf[TurnRow, turn[*float32]]{}, benchTurns(),
		turnRows(r, 40))
	reusedWriteTheSame(t, &rowsOf[ToolCallRow, ToolCallRow]{}, &rowsOf[ToolCallRow, ToolCallRow]{},
		toolCallRows(r, 900), toolCallRows(r, 40))
	reusedWriteTheSame(t, &rowsOf[TimingRow, TimingRow]{}, &rowsOf[TimingRow, TimingRow]{}, timingRows(r, 900),
		timingRows(r, 40))
}

func reusedWriteTheSame[R Row](t *testing.T, used, fresh declared[R], large, small []R) {
	want, err := fresh.write(small, 1000)
	require.NoError(t, err)
	for range 3 {
		_, err = used.write(large, 100_000)
		require.NoError(t, err)
		got, err := used.write(small, 1000)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}
