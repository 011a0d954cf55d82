package schema

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
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
			at, len(want), cmp.Diff(metadataOf(t, want), metadataOf(t, got)))
	}
}

func metadataOf(t *testing.T, data []byte) any {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return []any{file.Metadata(), file.ColumnIndexes(), file.OffsetIndexes()}
}

func TestPackedFilesAreTheLibrarys(t *testing.T) {
	t.Run("turns", func(t *testing.T) { packAll(t, turnRows) })
	t.Run("token_outputs", func(t *testing.T) { packAll(t, tokenOutputsRows) })
	t.Run("evaluation_turns", func(t *testing.T) {
		packAll(t, like(turnRows, func(r TurnRow) EvaluationTurnRow { return EvaluationTurnRow(r) }))
	})
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
