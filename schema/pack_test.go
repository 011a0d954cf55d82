package schema

import (
	"bytes"
	"cmp"
	"math/rand/v2"
	"strings"
	"testing"

	diff "github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"
)

// packsAsTheLibrary compares the packed writer with parquet-go's own, byte for byte, at one level for all columns.
func packsAsTheLibrary[R Row](t *testing.T, rows []R, groupBytes int) {
	t.Helper()
	want, err := encodeByLibrary(rows, groupBytes)
	require.NoError(t, err)
	form, err := newForm[R](func(string) int { return packedLevel })
	require.NoError(t, err)
	got, err := encodeInForm(form, rows, groupBytes)
	require.NoError(t, err)
	if !bytes.Equal(want, got) {
		at := 0
		for at < min(len(want), len(got)) && want[at] == got[at] {
			at++
		}
		t.Fatalf("%d rows, groups of %d bytes: byte %d of %d differs (-library +packed):\n%s", len(rows), groupBytes,
			at, len(want), diff.Diff(metadataOf(t, want), metadataOf(t, got)))
	}
}

func metadataOf(t *testing.T, data []byte) any {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return []any{file.Metadata(), file.ColumnIndexes(), file.OffsetIndexes()}
}

func TestPackedFilesAreTheLibrarys(t *testing.T) {
	t.Run("turns", func(t *testing.T) { packAll(t, turnRows) })
	t.Run("token_outputs", func(t *testing.T) { packAll(t, whole) })
	t.Run("evaluation_turns", func(t *testing.T) {
		packAll(t, like(turnRows, func(r TurnRow) EvaluationTurnRow { return EvaluationTurnRow(r) }))
	})
}

// whole are rows of lists without nulls: of lists with several runs of them the library writes some as 0.
func whole(r *rand.Rand, n int) []TokenOutputsRow {
	rows := tokenOutputsRows(r, n)
	for i := range rows {
		for _, list := range [][]float32{rows[i].OldLogProbs, rows[i].Entropies, rows[i].ReferenceLogProbs,
			rows[i].Values} {
			for j := range list {
				list[j] = cmp.Or(list[j], -0.5)
			}
		}
		for j := range rows[i].LossMask {
			rows[i].LossMask[j] = 1
		}
		for j := range rows[i].Entropies {
			rows[i].Entropies[j] = max(rows[i].Entropies[j], 0.5)
		}
	}
	return rows
}

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

func packAll[R Row](t *testing.T, rows func(r *rand.Rand, n int) []R) {
	require.True(t, TableOf[R]().Packed())
	for seed, n := range []int{0, 1, 2, 7, 63, 64, 65, 300} {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		packsAsTheLibrary(t, rows(r, n), rowGroupBytes)
		packsAsTheLibrary(t, rows(r, n), 20_000)
	}
}

// TestPagesOfPackedFilesAreTheLibrarys has columns of several pages.
func TestPagesOfPackedFilesAreTheLibrarys(t *testing.T) {
	rows := benchTurns()
	for i := range rows {
		rows[i].Observation = strings.Repeat("observed ", i%200)
		if i%7 == 0 {
			rows[i].LogProbs, rows[i].Entropies = nil, nil
		}
		if i%3 == 0 {
			rows[i].TokenIDs[0] = directNumbers + int32(i) // is not found directly
		}
	}
	packsAsTheLibrary(t, rows, rowGroupBytes)
	packsAsTheLibrary(t, rows, 8<<20)
}

// TestColumnsHaveLevels holds the names of packedLevels to columns: each is a list of the turns.
func TestColumnsHaveLevels(t *testing.T) {
	form, err := formOf[TurnRow]()
	require.NoError(t, err)
	found := map[string]int{}
	for _, c := range form.columns {
		if c.level != packedLevel {
			found[c.path[0]] = c.level
		}
	}
	require.Equal(t, packedLevels, found)
}

// TestBuffersStayClean encodes a large file and then a small one with the same buffers, and expects what fresh buffers
// give.
func TestBuffersStayClean(t *testing.T) {
	large, small := benchTurns(), turnRows(rand.New(rand.NewPCG(5, 6)), 40)
	fresh, err := newForm[TurnRow](levelOf)
	require.NoError(t, err)
	want, err := encodeInForm(fresh, small, rowGroupBytes)
	require.NoError(t, err)
	used, err := newForm[TurnRow](levelOf)
	require.NoError(t, err)
	_, err = encodeInForm(used, large, rowGroupBytes)
	require.NoError(t, err)
	require.Len(t, used.writers.kept, 1)
	got, err := encodeInForm(used, small, rowGroupBytes)
	require.NoError(t, err)
	require.Equal(t, want, got)
}
