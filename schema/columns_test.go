package schema

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"reflect"
	"runtime"
	"testing"
	"weak"

	"github.com/google/go-cmp/cmp"
	"github.com/parquet-go/parquet-go"
	"github.com/parquet-go/parquet-go/format"
	"github.com/stretchr/testify/require"
)

// written writes rows in a form that another program or version may choose.
func written[R Row](t *testing.T, rows []R, perGroup int, options ...parquet.WriterOption) []byte {
	var out bytes.Buffer
	w := parquet.NewGenericWriter[R](&out, append([]parquet.WriterOption{parquet.Compression(&parquet.Zstd),
		parquet.KeyValueMetadata(metaTable, string(TableOf[R]())), parquet.KeyValueMetadata(metaVersion, "4"),
		parquet.KeyValueMetadata(metaSeal, sealMark+sealDigits)}, options...)...)
	for start := 0; start < len(rows); start += perGroup {
		_, err := w.Write(rows[start:min(start+perGroup, len(rows))])
		require.NoError(t, err)
		require.NoError(t, w.Flush())
	}
	require.NoError(t, w.Close())
	require.NoError(t, seal(out.Bytes()))
	return out.Bytes()
}

// rowByRow reads a shard with parquet-go's own reader of rows: slowly, and by other code than Decode.
func rowByRow[R Row](t *testing.T, data []byte) []R {
	file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	reader := parquet.NewGenericReader[R](file)
	rows := make([]R, file.NumRows())
	n, err := reader.Read(rows)
	require.True(t, err == nil || errors.Is(err, io.EOF), err)
	require.Len(t, rows, n)
	require.NoError(t, reader.Close())
	return rows
}

func readsAsRowByRow[R Row](t *testing.T, make func(r *rand.Rand, n int) []R) {
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		rows := make(r, r.IntN(400))
		for _, o := range [][]parquet.WriterOption{
			{parquet.DataPageVersion(1)}, {parquet.DataPageVersion(2)}, {parquet.PageBufferSize(64)},
			writerOptions[R](TableOf[R]()),
			{parquet.DictionaryMaxBytes(16), parquet.PageBufferSize(64)}, // later pages have no dictionary
		} {
			data := written(t, rows, 1+r.IntN(200), o...)
			got, err := Decode[R](data)
			require.NoError(t, err)
			if diff := cmp.Diff(rowByRow[R](t, data), got); diff != "" {
				t.Fatalf("seed %d (-row by row +column by column):\n%s", seed, diff)
			}
		}
	}
}

func TestColumnsReadAsRowByRow(t *testing.T) {
	t.Run("prompts", func(t *testing.T) { readsAsRowByRow(t, promptRows) })
	t.Run("turns", func(t *testing.T) { readsAsRowByRow(t, turnRows) })
	t.Run("tool_calls", func(t *testing.T) { readsAsRowByRow(t, toolCallRows) })
	t.Run("transitions", func(t *testing.T) { readsAsRowByRow(t, transitionRows) })
	t.Run("trajectories", func(t *testing.T) { readsAsRowByRow(t, trajectoryRows) })
	t.Run("rewards", func(t *testing.T) { readsAsRowByRow(t, rewardRows) })
	t.Run("selection", func(t *testing.T) { readsAsRowByRow(t, selectionRows) })
	t.Run("updates", func(t *testing.T) { readsAsRowByRow(t, updateRows) })
	t.Run("timings", func(t *testing.T) { readsAsRowByRow(t, timingRows) })
}

// TestEveryFieldIsAColumn checks what the codec assumes: field i of a row is leaf column i.
func TestEveryFieldIsAColumn(t *testing.T) {
	for _, k := range Tables() {
		row := RowType(k)
		columns := parquet.SchemaOf(reflect.New(row).Interface()).Columns()
		require.Len(t, columns, row.NumField(), k)
		for i, path := range columns {
			tag, _, _ := bytes.Cut([]byte(row.Field(i).Tag.Get("parquet")), []byte(","))
			require.Equal(t, string(tag), path[0], "table %s column %d", k, i)
		}
	}
}

func TestListsDoNotShareRoom(t *testing.T) {
	rows, err := Decode[TurnRow](written(t, turnRows(rand.New(rand.NewPCG(1, 1)), 20), 20))
	require.NoError(t, err)
	want := make([][]int32, len(rows))
	for i := range rows {
		want[i] = append([]int32(nil), rows[i].TokenIDs...)
	}
	for i := range rows {
		rows[i].TokenIDs = append(rows[i].TokenIDs, -1) // must not write into the next row
	}
	for i := range rows {
		require.Equal(t, want[i], append([]int32(nil), rows[i].TokenIDs[:len(want[i])]...))
	}
}

// TestGroupsHoldOneGroup checks that reading group by group gives all rows, and keeps none of an earlier group.
func TestGroupsHoldOneGroup(t *testing.T) {
	data, err := encode(turnRows(rand.New(rand.NewPCG(1, 2)), 600), 20_000)
	require.NoError(t, err)
	all, err := Decode[TurnRow](data)
	require.NoError(t, err)
	var earlier []weak.Pointer[int32]
	n := 0
	for group, err := range Groups[TurnRow](data) {
		require.NoError(t, err)
		if diff := cmp.Diff(all[n:n+len(group)], group); diff != "" {
			t.Fatal(diff)
		}
		n += len(group)
		runtime.GC()
		for _, p := range earlier {
			require.Nil(t, p.Value(), "the tokens of an earlier group are still there")
		}
		for _, r := range group {
			if len(r.TokenIDs) > 0 {
				earlier = append(earlier, weak.Make(&r.TokenIDs[0]))
				break
			}
		}
	}
	require.Equal(t, len(all), n)
	require.Greater(t, len(earlier), 3)
}

func TestDecodeColumns(t *testing.T) {
	rows := []RewardRow{
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/000", Level: 3, Reward: 0.5, Verdict: "exact"},
		{GroupID: "00001/0000", TrajectoryID: "00001/0000/001", Level: 3, Reward: 1, Success: true, Verdict: "exact"},
	}
	data, err := Encode(rows)
	require.NoError(t, err)
	got, err := DecodeColumns[RewardRow](data, "trajectory_id", "reward", "reference")
	require.NoError(t, err)
	require.Equal(t, []RewardRow{{TrajectoryID: "00001/0000/000", Reward: 0.5},
		{TrajectoryID: "00001/0000/001", Reward: 1}}, got)
	_, err = DecodeColumns[RewardRow](data, "beauty")
	require.EqualError(t, err, "decode table rewards: it has no column beauty")
	data[len(data)/2] ^= 1
	_, err = DecodeColumns[RewardRow](data, "reward")
	require.ErrorIs(t, err, ErrCorrupt)
}

func TestGroupsRefuseDamage(t *testing.T) {
	data := encodeFixture(parquetCase(turnRows), 1, 30)
	data[len(data)/2] ^= 1
	for rows, err := range Groups[TurnRow](data) {
		require.ErrorIs(t, err, ErrCorrupt)
		require.Empty(t, rows)
	}
}

// TestLevelsAreCompressed checks that pages have version 1, whose levels are compressed with the values.
func TestLevelsAreCompressed(t *testing.T) {
	for _, c := range tableCases() {
		if c.table.Ext() != "parquet" {
			continue
		}
		data := encodeFixture(c, 1, 100)
		file, err := parquet.OpenFile(bytes.NewReader(data), int64(len(data)))
		require.NoError(t, err)
		for _, s := range file.Metadata().RowGroups[0].Columns[0].MetaData.EncodingStats {
			if s.PageType != format.DictionaryPage {
				require.Equal(t, format.DataPage, s.PageType, c.table)
			}
		}
	}
}
